"""Cilium's formula vectors, held literally or as `superseded` says."""

from __future__ import annotations

import pytest
from superseded import held, ours
from vector_world import NOW, POLICY, interfaces, known_state, limits, node_state, policy_of

from eni_tasks.domain import capacity, watermark
from eni_tasks.domain.planner import plan
from eni_tasks.domain.prefixes import Delegation, delegation
from eni_tasks.model.node import Node
from eni_tasks.model.plan import Figures

DEFAULT = POLICY.pre_allocate_default


@pytest.mark.parametrize("vector", held("needed_ips", level="formula"))
def test_needed(vector):
    given = vector["input"]
    pre_allocate = given["pre_allocate"] or (DEFAULT if vector["semantics"] == "1.6" else 0)
    assert ours(vector)["needed"] == watermark.needed(
        available=given["available"],
        used=given["used"],
        pre_allocate=pre_allocate,
        min_allocate=given["min_allocate"],
        cap=given.get("max_allocate") if given.get("max_allocate", 0) > 0 else None,
    )


@pytest.mark.parametrize("vector", held("needed_ips", level="resource"))
def test_needed_of_a_resource(vector):
    given, expected = vector["input"], ours(vector)
    spec = given["spec_ipam"]
    node = Node(
        name="node-1",
        uid="uid-1",
        first_interface_index=given["first_interface_index"],
        min_allocate=spec.get("min-allocate", 0),
        pre_allocate=spec.get("pre-allocate", 0),
        max_allocate=spec.get("max-allocate", 0),
    )
    found = limits(given["instance_type"], given["limits"])
    if found is None:
        eth0 = interfaces(
            [{"id": "eni-0", "number": 0, "subnet": "s", "ip": "", "addresses": [], "security_groups": []}]
        )
        known = plan(known_state(node, eth0), POLICY, NOW).figures
        assert (known.needed, known.excess) == (expected["needed"], expected["excess"])
        return
    cap = node.max_allocate or capacity.instance_capacity(found, node, (), Delegation(on=given["prefix_delegated"]))
    pre_allocate = watermark.pre_allocate(node, POLICY.pre_allocate_default)
    assert (pre_allocate, cap) == (expected["effective_pre_allocate"], expected["effective_max_allocate"])
    assert expected["needed"] == watermark.needed(
        available=given["available"],
        used=given["used"],
        pre_allocate=pre_allocate,
        min_allocate=node.min_allocate,
        cap=cap,
    )


@pytest.mark.parametrize("vector", held("excess_ips"))
def test_excess(vector):
    given = dict(vector["input"])
    given["pre_allocate"] = given["pre_allocate"] or (DEFAULT if vector["semantics"] == "1.6" else 0)
    assert watermark.excess(**given) == ours(vector)["excess"]


@pytest.mark.parametrize("vector", held("ordering"))
def test_ordering(vector):
    given, expected = vector["input"], ours(vector)
    nodes = {node["name"]: Figures(needed=node["needed"], excess=node["excess"]) for node in given["nodes"]}
    releasing = given["release_excess_ips"]
    assert {name: watermark.ordering_key(f, releasing=releasing) for name, f in nodes.items()} == expected["keys"]
    # The vectors leave the order among equals open; ours is by name.
    in_order = [name for group in expected["groups_in_order"] for name in sorted(group)]
    assert watermark.in_order(nodes, releasing=releasing) == in_order


@pytest.mark.parametrize("vector", held("limits_capacity", kind="max_allocatable"))
def test_instance_capacity(vector):
    given = vector["input"]
    node = Node(name="node-1", uid="uid-1", first_interface_index=given["first_interface_index"] or 0)
    found = limits(given["instance_type"], given["limits"])
    delegated = Delegation(on=given["prefix_delegated"])
    assert capacity.instance_capacity(found, node, (), delegated) == ours(vector)["max_allocatable"]


@pytest.mark.parametrize("vector", held("limits_capacity", kind="prefix_delegated"))
def test_which_interfaces_take_prefixes(vector):
    given = vector["input"]
    node = Node(
        name="node-1", uid="uid-1", disable_prefix_delegation=given["spec_eni"].get("disable-prefix-delegation")
    )
    attached = interfaces(given["enis"])
    found = limits(given["instance_type"], given["limits"])
    decided = delegation(known_state(node, attached, limits=found), policy_of(vector))
    assert {decided.takes_prefixes(interface) for interface in attached} == {ours(vector)["prefix_delegated"]}


@pytest.mark.parametrize("vector", held("limits_capacity", kind="pre_allocate_default"))
def test_pre_allocate_default(vector):
    given = vector["input"]
    found = limits(given["instance_type"], given["limits"])
    node = Node(name="node-1", uid="uid-1", first_interface_index=given["first_interface_index"] or 0)
    # Limits that are unknown: nothing is written then.
    fits = capacity.pre_allocate_default(found, node, (), DEFAULT) if found else DEFAULT
    assert fits == ours(vector)["pre_allocate"]


@pytest.mark.parametrize("vector", held("limits_capacity", kind="stats"))
def test_figures(vector):
    known, expected = plan(node_state(vector), policy_of(vector), NOW).figures, ours(vector)
    shown = {key: getattr(known, key) for key in ("capacity", "remaining_interfaces", "available")}
    assert shown == expected


@pytest.mark.parametrize(
    ("free", "needed", "excess", "expected"),
    [
        pytest.param(0, 3, 0, 0, id="needed and none free: before all others"),
        pytest.param(1, 3, 0, 1, id="needed"),
        pytest.param(9, 0, 2, 2, id="too many"),
        pytest.param(8, 0, 0, 3, id="at size"),
    ],
)
def test_urgency(free, needed, excess, expected):
    assert watermark.urgency(Figures(available=4 + free, used=4, needed=needed, excess=excess)) == expected
