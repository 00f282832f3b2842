"""What is left over, and what may go now: tables of the rule, and Cilium's vectors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from vector_world import Vector, cases, load
from worlds import eni, planned, world

from eni_tasks.domain.orphans import Rule, being_created, created_for, judge, ours, refusal
from eni_tasks.model.network import Interface, ownership
from eni_tasks.model.plan import CreateInterface

RULE = Rule(cluster="c1", vpc_ids=frozenset({"vpc-1"}), grace_seconds=300.0, removed_wait_seconds=25.0, most_count=25)
NODE = "node-1"


def left(name: str = "eni-1", made: str = "i-1", **more: Any) -> Interface:
    """Build an unattached interface that is fully ours."""
    given: dict[str, Any] = {
        "id": name,
        "subnet_id": "subnet-a",
        "vpc_id": "vpc-1",
        "primary_address": "10.0.0.4",
        "status": "available",
        "description": f"Cilium-CNI ({made})" if made else "",
        "tags": ownership("c1"),
    }
    return Interface(**given | more)


def deleted(interfaces: list[Interface], seen_seconds: float, removed: tuple[str, ...] = ()) -> list[str]:
    seen = {each.id: seen_seconds for each in interfaces}
    return [each.id for each in judge(interfaces, seen, removed, RULE).delete]


# -- whose is it -------------------------------------------------------------------------------------
OURS = ownership("c1")


@pytest.mark.parametrize(
    ("more", "is_ours"),
    [
        pytest.param({"tags": ownership("c2")}, False, id="B06-a: managed tag, other cluster"),
        pytest.param({"vpc_id": "vpc-2"}, False, id="B06-b: ours, other VPC"),
        pytest.param({"tags": {}}, False, id="B06-c: our description, no tags"),
        pytest.param({}, True, id="B06-d: fully ours"),
        pytest.param({"description": "by hand"}, True, id="the description says nothing about whose it is"),
        pytest.param({"tags": OURS | {"team": "net"}}, True, id="more tags do not matter"),
        pytest.param({"tags": {"io.cilium/cluster-name": "c1"}}, False, id="managed tag missing"),
        pytest.param({"tags": OURS | {"io.cilium/cilium-managed": "false"}}, False, id="not managed"),
        pytest.param({"tags": {"io.cilium/cilium-managed": "true"}}, False, id="cluster tag missing"),
        pytest.param({"status": "in-use"}, False, id="in use"),
        pytest.param({"status": "available", "attachment_id": "eni-attach-1"}, False, id="going away, not gone"),
    ],
)
def test_whose_it_is(more, is_ours):
    assert ours([left(**more)], RULE) == ([left(**more)] if is_ours else [])


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        pytest.param({"cluster": ""}, "ENI_TASKS_CLUSTER", id="B06: no name"),
        pytest.param({"cluster": "default"}, "ENI_TASKS_CLUSTER", id="B06: the name of all that have none"),
        pytest.param({"vpc_ids": frozenset()}, "no VPC of a node is known yet", id="nothing read yet"),
    ],
)
def test_where_nothing_is_certainly_ours(rule, says):
    refusing = msgspec.structs.replace(RULE, **rule)
    assert says in refusal(refusing)
    named = left(tags=ownership(refusing.cluster))
    assert ours([named], refusing) == []


def test_a_named_cluster_with_nodes_is_not_refused():
    assert refusal(RULE) == ""


# -- is it being created -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("entry", "spared"),
    [
        pytest.param(b'{"step":"created","interface":{"id":"eni-1"}}', True, id="B04: created, not attached"),
        pytest.param(b'{"step":"intent","request":{"instance_id":"i-1"}}', True, id="B04: perhaps created"),
        pytest.param(b'{"later":["eni-1"]}', True, id="an entry of another version"),
        pytest.param(b'{"step":"created","interface":{"id":"eni-2"}}', False, id="another interface"),
        pytest.param(b"{}", False, id="nothing named"),
    ],
)
def test_what_a_journal_speaks_of_is_being_created(entry, spared):
    assert being_created([left()], {NODE: entry}) == ({"eni-1": NODE} if spared else {})


def test_a_journal_says_nothing_of_an_interface_that_names_no_instance():
    assert being_created([left(made="")], {NODE: b'{"step":"intent","request":{"instance_id":""}}'}) == {}


def test_the_description_of_a_new_interface_names_its_instance():
    action = planned(world(eni(0, 0, "subnet-n"))).action
    assert isinstance(action, CreateInterface)
    assert created_for(left(description=action.description)) == action.instance_id == "i-1"


@pytest.mark.parametrize("description", ["", "Cilium-CNI", "Cilium-CNI ()", "x Cilium-CNI (i-1)", "Cilium-CNI (i-1) x"])
def test_another_description_names_none(description):
    assert created_for(left(description=description)) == ""


# -- has it waited -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seen_seconds", "removed", "gone"),
    [
        pytest.param(0.0, (), False, id="B03: pass 1 deletes nothing"),
        pytest.param(20.0, (), False, id="B04: 20 s"),
        pytest.param(299.9, (), False, id="B04: not quite"),
        pytest.param(301.0, (), True, id="B03, B04: 301 s, on the second pass"),
        pytest.param(0.0, ("i-1",), False, id="B07: node removed, first seen"),
        pytest.param(24.9, ("i-1",), False, id="B07: node removed, a call may be under way"),
        pytest.param(25.0, ("i-1",), True, id="B07: node removed, seen twice"),
        pytest.param(25.0, ("i-2",), False, id="B07: another node removed"),
    ],
)
def test_how_long_it_waits(seen_seconds, removed, gone):
    assert deleted([left()], seen_seconds, removed) == (["eni-1"] if gone else [])
    verdict = judge([left()], {"eni-1": seen_seconds}, removed, RULE)
    wait = 25.0 if "i-1" in removed else 300.0
    assert verdict.waiting == ({} if gone else {"eni-1": wait - seen_seconds})


def test_an_interface_that_names_no_instance_waits_for_the_whole_grace():
    assert deleted([left(made="")], 100.0, ("i-1",)) == []


def test_what_was_never_noted_is_new():
    verdict = judge([left()], {}, (), RULE)
    assert (verdict.delete, verdict.waiting) == ((), {"eni-1": 300.0})


# -- how many ----------------------------------------------------------------------------------------
def test_b05_at_most_so_many_in_a_pass():
    """60 in pages of 24, 25 and 11: the limit is cut exactly, and those seen longest go first."""
    there = [left(f"eni-{number:02}") for number in range(60)]
    seen = {each.id: 400.0 + number for number, each in enumerate(there)}
    counts = []
    while there:
        verdict = judge(there, seen, (), RULE)
        assert [seen[each.id] for each in verdict.delete] == sorted((seen[e.id] for e in there), reverse=True)[:25]
        assert set(verdict.waiting) == {each.id for each in there} - {each.id for each in verdict.delete}
        assert set(verdict.waiting.values()) <= {0.0}
        there = [each for each in there if each not in verdict.delete]
        counts.append(len(verdict.delete))
    assert counts == [25, 25, 10]


# -- Cilium's vectors --------------------------------------------------------------------------------
@pytest.mark.parametrize("vector", cases(load("eni_gc")))
def test_vectors(vector: Vector) -> None:
    """Their tag `m` stands for the cluster's; passes are 300 s apart, as long as the grace.

    What a vector calls marked is what the next pass may delete: those that wait, up to the limit. We
    remember the others too, so that theirs is not a longer wait.
    """
    given = vector["input"]
    rule = msgspec.structs.replace(RULE, cluster=given["tags"]["m"], most_count=given["max_per_run"])
    first_seen: dict[str, float] = {}
    for number, (run, expected) in enumerate(zip(given["runs"], vector["expected"]["runs"], strict=True)):
        now = number * 300.0
        found = ours([left(each["id"], tags=_our_tags(each["tags"])) for each in run["detached"]], rule)
        first_seen = {each.id: first_seen.get(each.id, now) for each in found}
        verdict = judge(found, {name: now - since for name, since in first_seen.items()}, (), rule)
        assert [each.id for each in verdict.delete] == expected["delete_calls"] == expected["deleted"]
        assert sorted(verdict.waiting)[: given["max_per_run"]] == sorted(expected["marked"])


def _our_tags(tags: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if key != "m"} | (ownership(tags["m"]) if "m" in tags else {})
