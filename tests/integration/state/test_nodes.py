"""Nodes by resourceVersion and uid, and everything that is known of each; the journal behind the fence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from state_under_test import LEASE, NODE, State, node

from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.network import Infrastructure, InstanceId, Limits, NodeName
from eni_tasks.model.node import Memory
from eni_tasks.model.state import NodeState, Outcome, ReadResult
from eni_tasks.model.work import Claim, Finished
from eni_tasks.state.runs import RunEnd

if TYPE_CHECKING:
    from eni_tasks.model.cilium_node import CiliumNode


def store(state: State, *objects: CiliumNode) -> list[CiliumNode | Literal[False] | None]:
    """Store objects as a watcher does; returns what each replaces (False: it is not newer)."""
    before = state.nodes.before(objects)
    state.store(*objects)
    return before


def machine(instance: str, kind: str, *, later: bool = True) -> CiliumNode:
    """A node with an instance and a type, in the later generation of the object or in that of Cilium 1.6."""
    eni = {"instance-type": kind} | ({} if later else {"instance-id": instance})
    return node(spec={"eni": eni} | ({"instance-id": instance} if later else {}))


# -- objects ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("stored", "offered", "newer"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("9007199254740993", "9007199254740992", False),
        ("9007199254740992", "9007199254740993", True),
        ("999999999999999999999", "1000000000000000000000", True),
    ],
    ids=["longer", "shorter", "same", "beyond 2^53, older", "beyond 2^53, newer", "beyond 2^64"],
)
def test_only_newer_objects_are_stored(state: State, stored: str, offered: str, *, newer: bool) -> None:
    assert store(state, node(stored)) == [None]
    assert store(state, node(offered)) == [node(stored) if newer else False]
    assert state.nodes.object(NODE) == node(offered if newer else stored)


def test_another_object_of_the_same_name_follows_the_same_rule(state: State) -> None:
    store(state, node("5", "uid-1"))
    assert store(state, node("4", "uid-0"), node("6", "uid-2")) == [False, node("5", "uid-1")]


def test_many_in_one_call_and_read_back_in_portions(state: State) -> None:
    objects = [node(name=f"n{i}") for i in range(450)]
    assert store(state, *objects) == [None] * 450
    assert sorted(o.metadata.name for o in state.nodes.all_objects()) == sorted(f"n{i}" for i in range(450))


@pytest.mark.parametrize(
    ("uid", "version", "removed"),
    [
        ("", "", True),
        ("uid-1", "", True),
        ("uid-2", "", False),
        ("", "99", False),
        ("", "100", True),
        ("", "1000", True),
        ("uid-2", "100", True),
        ("uid-1", "99", True),
        ("uid-2", "99", False),
    ],
)
def test_a_node_is_removed_if_it_is_still_that_one(state: State, uid: str, version: str, *, removed: bool) -> None:
    claim = state.claim()
    store(state, node("100"))
    write(state, claim, b"step")
    memory = Memory(uid="uid-1", failures=1)
    state.runs.end(claim, RunEnd(memory=memory))
    assert state.nodes.remove(NODE, uid=uid, resource_version=version) is removed
    assert (state.nodes.object(NODE), state.nodes.journal(NODE)) == (
        (None, None) if removed else (node("100"), b"step")
    )
    store(state, node("100"))
    assert state.nodes.read(NODE).stored_memory == (Memory() if removed else memory)


def test_a_node_is_removed_once(state: State) -> None:
    store(state, node("1"))
    assert state.nodes.remove(NODE)
    assert not state.nodes.remove(NODE)
    assert store(state, node("1")) == [None]


# -- memory and journal ---------------------------------------------------------------------------------
def write(state: State, claim: Claim, entry: bytes) -> bool:
    return state.runs.record(claim, Outcome(journal=entry))


def test_memory_and_journal_need_a_live_claim(state: State) -> None:
    memory = Memory(uid="uid-1", failures=2, reasons=("at-size",))
    store(state, node())
    first = state.claim()
    assert write(state, first, b"zero")
    state.runs.end(first, RunEnd(memory=memory))
    claim = state.claim()
    assert write(state, claim, b"one")
    state.later(LEASE)
    assert not write(state, claim, b"two")
    successor = state.claim()
    assert not write(state, claim, b"")
    assert state.runs.end(claim, RunEnd(memory=Memory())).finished is Finished.STALE
    known = state.nodes.read(NODE)
    assert (known.memory, known.journal) == (memory, b"one")
    assert state.nodes.journals() == {NODE: b"one"}
    assert write(state, successor, b"")
    assert state.nodes.read(NODE).journal is None


# -- states ---------------------------------------------------------------------------------------------
def test_a_node_that_is_not_stored_is_gone(state: State) -> None:
    with pytest.raises(NodeGone):
        state.nodes.read(NODE)


def test_what_is_not_known_of_a_node_is_unknown_not_zero(state: State) -> None:
    store(state, node())
    known = state.nodes.read(NODE)
    assert (known.facts, known.interfaces, known.journal) == (None, None, None)
    assert (known.limits, known.limits_requested) == (None, False)
    assert (known.infrastructure, known.stored_memory) == (Infrastructure(), Memory())


@pytest.mark.parametrize("place", ["spec", "eni"], ids=["later generation", "Cilium 1.6"])
def test_a_state_has_the_facts_and_limits_of_the_objects_machine(state: State, place: str) -> None:
    store(state, machine("i-7", "m5.large", later=place == "spec"))
    state.begin_old_generation()
    shown = ReadResult(instance_id=InstanceId("i-7"), interfaces=(), version=0)
    state.facts.merge([shown], started_at=state.now())
    known = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10)
    state.network.put_limits({"m5.large": known}, negative_ttl_seconds=600)
    ((name, answer),) = state.nodes.read_many([NODE])
    assert isinstance(answer, NodeState)
    assert answer.facts is not None
    assert (name, answer.facts.instance_id, answer.limits, answer.limits_requested) == (NODE, "i-7", known, True)


@pytest.mark.parametrize(
    ("spec", "understood"),
    [
        (None, True),
        ([], False),
        ({"eni": 7}, False),
        ({"instance-id": "i *"}, False),
        ({"eni": {"instance-type": "a b"}}, False),
    ],
    ids=str,
)
def test_an_absurd_object_is_stored_and_has_no_machine(state: State, spec: object, *, understood: bool) -> None:
    obj = node(spec=spec)
    store(state, obj)
    assert state.nodes.object(NODE) == obj
    ((_, answer),) = state.nodes.read_many([NODE])
    if understood:
        assert isinstance(answer, NodeState)
        assert (answer.obj, answer.facts, answer.limits_requested) == (obj, None, False)
    else:
        assert isinstance(answer, InvalidInput)


def test_limits_that_ec2_does_not_know_were_requested(state: State) -> None:
    known = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10)
    state.network.put_limits({"m5.large": known, "x9.odd": None}, negative_ttl_seconds=600)
    assert state.network.limits(["m5.large", "x9.odd", "new"]) == {"m5.large": known, "x9.odd": None}
    store(state, machine("i-1", "x9.odd"))
    assert (state.nodes.read(NODE).limits, state.nodes.read(NODE).limits_requested) == (None, True)
    state.network.put_limits({"x9.odd": None}, negative_ttl_seconds=-1)
    assert state.network.limits(["x9.odd"]) == {}
    assert state.network.limits([]) == {}


def test_nodes_in_deficit_come_longest_first(state: State) -> None:
    state.store_nodes("a", "b")
    for name in ("b", "a"):
        state.runs.end(state.claim(name), RunEnd(in_deficit=True))
        state.later(1)
    assert state.nodes.in_deficit() == [NodeName("b"), NodeName("a")]
