"""What we write: all that differs, nothing else, and only over what we have seen."""

from __future__ import annotations

import copy

import msgspec
import pytest
from agent_accepts import agent_accepts
from vector_world import POLICY, decoded
from worlds import M5_LARGE, eni, subnet, world

from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.status import next_write
from eni_tasks.model.network import Infrastructure, Limits
from eni_tasks.model.node import Memory
from eni_tasks.model.state import Facts
from eni_tasks.sandbox.kube.patching import json_patch
from eni_tasks.sandbox.kube.statuses import ApiError

ETH0 = eni(0, 0)
NANO = Limits(instance_type="t3.nano", max_interfaces=2, ipv4_per_interface=2)
OLD = {"eni": {"instance-id": "i-1", "first-interface-index": 1}}
NEW = {"instance-id": "i-1", "eni": {"first-interface-index": 1}, "ipam": {}}

NO_INTERFACES = Facts(instance_id="i-1", interfaces=(), described_at=1.0)
GUARDED = ["/metadata/uid", "/metadata/resourceVersion"]


def an_object(spec=NEW, status=None, version="7"):
    obj = {"metadata": {"name": "node-1", "uid": "uid-1", "resourceVersion": version}, "spec": copy.deepcopy(spec)}
    return obj | ({"status": status} if status is not None else {})


def of(obj, *interfaces, **more):
    return msgspec.structs.replace(world(*interfaces, **more), node=parse_node(decoded(obj)))


def written(obj, state):
    """The next write, as a pair: of the status, or of the object."""
    write = next_write(decoded(obj), state, POLICY)
    if write is None:
        return [], []
    return (write.operations, []) if write.to_status else ([], write.operations)


def publish(obj, state):
    """Write as the publish service does, and see that no version on the way is one that agents refuse."""
    obj = copy.deepcopy(obj)
    before = accepted(obj)
    for _ in range(3):
        status, spec = written(obj, state)
        json_patch(obj, status + spec)
        if status or spec:
            obj["metadata"]["resourceVersion"] += "1"
        assert accepted(obj) or not before
    assert written(obj, state) == ([], [])
    return obj


def accepted(obj):
    enis = ((obj.get("status") or {}).get("eni") or {}).get("enis") or {}
    pool = (obj["spec"].get("ipam") or {}).get("pool") or {}
    return agent_accepts(enis, pool) is None


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(an_object(OLD), id="1.6, no status"),
        pytest.param(an_object(NEW), id="later, no status"),
        pytest.param(an_object(NEW, {"ipam": {}, "eni": {}}), id="later, empty status"),
        pytest.param(an_object(NEW, {"ipam": None}), id="null parts"),
    ],
)
def test_the_first_publication(obj):
    snapshot = of(obj, ETH0, eni(1, 3))
    shown = publish(obj, snapshot)
    assert shown["status"]["ipam"]["used"] == {}
    assert shown["status"]["eni"]["enis"].keys() == {"eni-0", "eni-1"}
    assert shown["spec"]["ipam"]["pool"] == {f"10.1.1.{n}": {"resource": "eni-1"} for n in range(3)}
    assert agent_accepts(shown["status"]["eni"]["enis"], shown["spec"]["ipam"]["pool"]) is None


@pytest.mark.parametrize(
    ("spec", "limits", "place", "expected"),
    [
        pytest.param(NEW, M5_LARGE, "ipam", 8, id="later: spec.ipam"),
        pytest.param(OLD, M5_LARGE, "eni", 8, id="1.6: spec.eni"),
        pytest.param(NEW, NANO, "ipam", 1, id="no more than fits"),
        pytest.param(NEW | {"ipam": {"pre-allocate": 0}}, M5_LARGE, "ipam", 8, id="0 is absent"),
        pytest.param(NEW | {"ipam": {"pre-allocate": 3}}, M5_LARGE, "ipam", 3, id="a person's own figure stays"),
        pytest.param(NEW | {"eni": {"pre-allocate": 3}}, M5_LARGE, "ipam", None, id="so it does in the older place"),
    ],
)
def test_pre_allocate_is_written_back_where_there_is_none(spec, limits, place, expected):
    obj = an_object(spec)
    shown = publish(obj, of(obj, ETH0, limits=limits))
    assert shown["spec"][place].get("pre-allocate") == expected


def test_only_what_differs_is_written():
    obj = publish(an_object(), of(an_object(), ETH0, eni(1, 3)))
    # EC2 promises no order; the fourth address is news, and the first interface is unchanged.
    grown = eni(1, 4, addresses=("10.1.1.3", "10.1.1.1", "10.1.1.0", "10.1.1.2"))
    status, _ = written(obj, of(obj, ETH0, grown))
    assert [operation["path"] for operation in status] == [*GUARDED, "/status/eni/enis/eni-1"]
    json_patch(obj, status)
    _, spec = written(obj, of(obj, ETH0, grown))
    assert spec == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-1"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]},
        {"op": "add", "path": "/spec/ipam/pool/10.1.1.3", "value": {"resource": "eni-1"}},
    ]
    obj["spec"]["ipam"]["pool"].pop("10.1.1.3", None)
    shuffled = msgspec.structs.replace(grown, addresses=("10.1.1.2", "10.1.1.1", "10.1.1.0"))
    assert written(publish(obj, of(obj, ETH0, eni(1, 3))), of(obj, ETH0, shuffled)) == ([], [])


def test_an_address_leaves_the_pool_before_its_interface_leaves_the_status():
    obj = publish(an_object(), of(an_object(), ETH0, eni(1, 3), eni(2, 2)))
    status, spec = written(obj, of(obj, ETH0, eni(1, 2)))
    assert status == []
    removed = {(operation["op"], operation["path"].rpartition("/")[2]) for operation in spec[len(GUARDED) :]}
    assert removed == {("remove", "10.1.1.2"), ("remove", "10.2.1.0"), ("remove", "10.2.1.1")}


def test_what_is_gone_is_removed_and_foreign_fields_stay():
    obj = publish(an_object(), of(an_object(), ETH0, eni(1, 3), eni(2, 2)))
    obj["status"]["ipam"]["used"] = {"10.1.1.0": {"owner": "default/pod"}}
    obj["spec"]["health"] = {"ipv4": "10.0.0.9"}
    shown = publish(obj, of(obj, ETH0, eni(1, 2)))
    assert shown["status"]["eni"]["enis"].keys() == {"eni-0", "eni-1"}
    assert shown["spec"]["ipam"]["pool"].keys() == {"10.1.1.0", "10.1.1.1"}
    assert shown["status"]["ipam"]["used"] == {"10.1.1.0": {"owner": "default/pod"}}
    assert shown["spec"]["health"] == {"ipv4": "10.0.0.9"}


def test_the_agents_first_report_between_read_and_write_is_not_lost():
    obj = an_object(NEW, {"eni": {}, "ipam": {}})
    status, _ = written(obj, of(obj, ETH0, eni(1, 3)))
    meanwhile = an_object(NEW, {"eni": {}, "ipam": {"used": {"10.1.1.0": {}}}}, version="8")
    with pytest.raises(ApiError):
        json_patch(meanwhile, status)
    assert meanwhile["status"]["ipam"]["used"]


def test_another_object_under_the_same_name_is_not_touched():
    obj = an_object()
    status, _ = written(obj, of(obj, ETH0))
    with pytest.raises(ApiError):
        json_patch(obj | {"metadata": obj["metadata"] | {"uid": "uid-2"}}, status)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (NEW, NEW | {"instance-id": "i-2"}),
        (OLD, OLD | {"eni": OLD["eni"] | {"instance-id": "i-2"}}),
    ],
    ids=["later generation", "Cilium 1.6"],
)
def test_another_machine_under_the_same_object_does_not_get_the_last_ones(before, after):
    obj = an_object(before)
    status, _ = written(obj, of(obj, ETH0))
    with pytest.raises(ApiError):
        json_patch(an_object(after, version="8"), status)


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param({"vpcs": {}}, id="VPC unknown (S-28)"),
        pytest.param({"subnets": {}}, id="subnet unknown"),
    ],
)
def test_an_interface_whose_network_is_unknown_is_held_back(unknown):
    obj = an_object()
    good = of(obj, ETH0, eni(1, 3))
    blind = msgspec.structs.replace(good, infrastructure=msgspec.structs.replace(good.infrastructure, **unknown))
    shown = publish(obj, blind)
    assert "eni" not in shown["status"]
    assert "pool" not in shown["spec"]["ipam"]


def test_losing_the_infrastructure_takes_nothing_away_that_agents_have():
    obj = publish(an_object(), of(an_object(), ETH0, eni(1, 3)))
    blind = msgspec.structs.replace(of(obj, ETH0, eni(1, 5)), infrastructure=Infrastructure())
    assert written(obj, blind) == ([], [])


def test_a_held_back_interface_that_agents_would_refuse_is_taken_out():
    obj = an_object(status={"eni": {"enis": {"eni-1": {"id": "eni-1", "vpc": {"id": "vpc-1"}}}}})
    obj["spec"]["ipam"]["pool"] = {"10.1.1.0": {"resource": "eni-1"}}
    blind = msgspec.structs.replace(of(obj, ETH0, eni(1, 3)), infrastructure=Infrastructure())
    shown = publish(obj, blind)
    assert (shown["status"]["eni"]["enis"], shown["spec"]["ipam"]["pool"]) == ({}, {})


def test_excluded_interfaces_are_shown_but_not_pooled_and_leaving_ones_neither():
    spec = NEW | {"eni": {"first-interface-index": 0, "exclude-interface-tags": {"no": "pods"}}}
    obj = an_object(spec)
    leaving = eni(2, 4, attachment_status="detaching")
    shown = publish(obj, of(obj, eni(0, 2), eni(1, 3, tags={"no": "pods"}), leaving))
    assert shown["status"]["eni"]["enis"].keys() == {"eni-0", "eni-1"}
    assert shown["spec"]["ipam"]["pool"].keys() == {"10.0.1.0", "10.0.1.1"}


def test_an_address_on_two_interfaces_is_pooled_once():
    obj = an_object()
    shown = publish(obj, of(obj, ETH0, eni(1, 2), eni(2, 0, addresses=("10.1.1.1", "10.2.1.0"))))
    assert shown["spec"]["ipam"]["pool"]["10.1.1.1"] == {"resource": "eni-1"}
    assert len(shown["spec"]["ipam"]["pool"]) == 3


def test_trouble_comes_and_goes():
    obj = publish(an_object(), of(an_object(), ETH0))
    shown = publish(obj, of(obj, ETH0, memory=Memory(trouble="No subnet with room.")))
    assert shown["status"]["ipam"]["operator-status"]["error"] == "No subnet with room."
    assert publish(shown, of(shown, ETH0, memory=Memory(trouble="No subnet with room."))) == shown
    shown = publish(shown, of(shown, ETH0))
    assert "error" not in shown["status"]["ipam"]["operator-status"]


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        pytest.param({"facts": None}, [*GUARDED, "/status/ipam/operator-status/error"], id="not read"),
        pytest.param({"facts": NO_INTERFACES}, [*GUARDED, "/status/ipam/operator-status/error"], id="no interfaces"),
        pytest.param({"limits": None}, [*GUARDED, "/status/ipam/operator-status/error"], id="limits unknown"),
    ],
)
def test_unknown_facts_write_nothing_but_the_trouble(change, paths):
    obj = publish(an_object(), of(an_object(), ETH0, eni(1, 3), memory=Memory(trouble="x")))
    snapshot = msgspec.structs.replace(of(obj, memory=Memory(trouble="y"), subnets=(subnet("subnet-a", 1),)), **change)
    status, spec = written(obj, snapshot)
    assert [operation["path"] for operation in status] == paths
    assert spec == []


@pytest.mark.parametrize("change", [{"instance_id": ""}, {"deleting": True}, {"ignored": True}])
def test_nodes_that_are_left_alone_are_not_written_at_all(change):
    obj = publish(an_object(), of(an_object(), ETH0, eni(1, 3)))
    snapshot = of(obj, ETH0, eni(1, 9), memory=Memory(trouble="x"))
    node = msgspec.structs.replace(snapshot.node, **change)
    assert written(obj, msgspec.structs.replace(snapshot, node=node)) == ([], [])
