"""Nodes by resourceVersion and uid; their memory and journal behind the fence."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from state_under_test import KIND, LEASE, NODE, State

from eni_tasks.model.network import Infrastructure, InstanceId, Limits, NodeName
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import Outcome, ReadResult
from eni_tasks.model.work import Claim, Finished


def node(version: str, uid: str = "uid-1", name: str = NODE) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": version}, "spec": {"v": version}}


def take_in(state: State, *objects: dict[str, Any]) -> list[dict[str, Any] | Literal[False] | None]:
    before = state.nodes.before(objects)
    state.runs.store(objects)
    return before


def test_what_follows_from_objects_is_written_with_them(state: State) -> None:
    needs = [(NODE, Urgency.EMPTY)]
    taken = state.runs.store([node("1")], reads=[NODE], maintain=needs, publish=needs, needy=[NODE])
    assert (taken.maintain, taken.publish, state.reads.due_count()) == ((NODE,), (NODE,), 1)
    again = state.runs.store([node("2")], maintain=needs, publish=needs, needy=[NODE])
    assert (again.maintain, again.publish) == ((), ()), "folded"


def machine(instance: str, kind: str, *, later: bool = True) -> dict[str, Any]:
    eni = {"instance-type": kind} | ({} if later else {"instance-id": instance})
    return node("1") | {"spec": {"eni": eni} | ({"instance-id": instance} if later else {})}


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
    assert take_in(state, node(stored)) == [None]
    assert take_in(state, node(offered)) == [node(stored) if newer else False]
    assert state.nodes.object(NODE) == node(offered if newer else stored)


def test_another_object_of_the_same_name_follows_the_same_rule(state: State) -> None:
    take_in(state, node("5", "uid-1"))
    assert take_in(state, node("4", "uid-0"), node("6", "uid-2")) == [False, node("5", "uid-1")]


def test_many_in_one_call_and_read_back_in_portions(state: State) -> None:
    objects = [node("1", name=f"n{i}") for i in range(450)]
    assert take_in(state, *objects) == [None] * 450
    assert sorted(o["metadata"]["name"] for o in state.nodes.all_objects()) == sorted(f"n{i}" for i in range(450))


@pytest.mark.parametrize(
    ("uid", "version", "dropped"),
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
def test_a_node_is_dropped_if_it_is_still_that_one(state: State, uid: str, version: str, *, dropped: bool) -> None:
    claim = state.claim()
    take_in(state, node("100"))
    write(state, claim, b"step")
    state.runs.end(claim, memory=Memory(failures=1))
    assert state.nodes.remove(NODE, uid=uid, resource_version=version) is dropped
    world = state.nodes.read(NODE)
    assert (world.obj is None, world.memory == Memory(), world.journal is None) == (dropped,) * 3


def test_a_node_is_dropped_once(state: State) -> None:
    take_in(state, node("1"))
    assert state.nodes.remove(NODE)
    assert not state.nodes.remove(NODE)
    assert take_in(state, node("1")) == [None]


def write(state: State, claim: Claim, entry: bytes) -> bool:
    return state.runs.record(claim, Outcome(journal=entry))


def test_memory_and_journal_need_a_live_claim(state: State) -> None:
    memory = Memory(uid="u", failures=2, reasons=("at-size",))
    first = state.claim()
    assert write(state, first, b"zero")
    state.runs.end(first, memory=memory)
    claim = state.claim()
    assert write(state, claim, b"one")
    state.later(LEASE)
    assert not write(state, claim, b"two")
    successor = state.claim()
    assert not write(state, claim, b"")
    assert state.runs.end(claim, memory=Memory()).finished is Finished.STALE
    world = state.nodes.read(NODE)
    assert (world.memory, world.journal) == (memory, b"one")
    assert state.nodes.journals() == {NODE: b"one"}
    assert write(state, successor, b"")
    assert state.nodes.read(NODE).journal is None


def test_an_empty_world_is_unknown_not_zero(state: State) -> None:
    world = state.nodes.read(NODE)
    assert (world.obj, world.journal, world.infrastructure, world.memory) == (None, None, None, Memory())
    assert (world.facts, world.limits, world.limits_requested) == (None, None, False)


def test_a_run_begins_and_ends_in_one_round_trip_each(state: State) -> None:
    take_in(state, machine("i-1", "m5.large"))
    state.network.put_infrastructure(Infrastructure(described_at=1))
    state.nodes.read(NODE)  # decodes the infrastructure, once
    exchanges: list[int] = []
    connection = state.client.connection_pool.get_connection()
    send = connection.send_packed_command
    connection.send_packed_command = lambda *args, **kwargs: (exchanges.append(1), send(*args, **kwargs))[1]
    state.client.connection_pool.release(connection)
    begun = state.runs.begin(KIND, NODE)
    assert begun is not None
    assert len(exchanges) == 1
    assert state.runs.end(begun[0], memory=Memory(failures=1), publish=Urgency.DEFICIT).publish
    assert len(exchanges) == 2
    assert state.nodes.read(NODE).memory.failures == 1


def test_a_held_node_has_no_other_run(state: State) -> None:
    state.claim()
    assert state.runs.begin(KIND, NODE) is None


@pytest.mark.parametrize("place", ["spec", "eni"], ids=["later generation", "Cilium 1.6"])
def test_a_world_has_the_facts_and_limits_of_the_objects_machine(state: State, place: str) -> None:
    take_in(state, machine("i-7", "m5.large", later=place == "spec"))
    state.begin_old_generation()
    shown = ReadResult(instance_id=InstanceId("i-7"), interfaces=(), version=0)
    state.facts.merge([shown], started_at=state.now())
    known = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10)
    state.network.put_limits({"m5.large": known}, negative_ttl_seconds=600)
    (world,) = state.nodes.read_many([NODE])
    assert world.facts is not None
    assert (world.facts.instance_id, world.limits, world.limits_requested) == ("i-7", known, True)


@pytest.mark.parametrize(
    "spec", [None, [], {"eni": 7}, {"instance-id": "i *"}, {"eni": {"instance-type": "a b"}}], ids=str
)
def test_an_absurd_object_has_no_machine(state: State, spec: object) -> None:
    obj = node("1") | {"spec": spec}
    take_in(state, obj)
    world = state.nodes.read(NODE)
    assert (world.obj, world.facts, world.limits_requested) == (obj, None, False)


def test_limits_tell_unknown_from_never_asked(state: State) -> None:
    known = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10)
    state.network.put_limits({"m5.large": known, "x9.odd": None}, negative_ttl_seconds=600)
    assert state.network.limits(["m5.large", "x9.odd", "new"]) == {"m5.large": known, "x9.odd": None}
    take_in(state, machine("i-1", "x9.odd"))
    assert (state.nodes.read(NODE).limits, state.nodes.read(NODE).limits_requested) == (None, True)
    state.network.put_limits({"x9.odd": None}, negative_ttl_seconds=-1)
    assert state.network.limits(["x9.odd"]) == {}
    assert state.network.limits([]) == {}


def test_events_are_read_in_order_from_where_one_stopped(state: State) -> None:
    for number in range(3):
        state.events.append("AssignPrivateIpAddresses", {"node": NODE, "count": number})
    first, *_ = state.events.after(after="0", limit=1)
    assert (first.what, first.fields) == ("AssignPrivateIpAddresses", {"node": "n", "count": "0"})
    assert [e.fields["count"] for e in state.events.after(after=first.id, limit=9)] == ["1", "2"]


def test_the_epoch_stands_until_redis_is_emptied(state: State) -> None:
    mark = state.coordination.begin_generation()
    assert state.coordination.begin_generation() == state.summary.read(()).epoch == mark
    state.client.delete(state.keys.generation)
    assert state.coordination.begin_generation() != mark


def test_a_slot_is_one_callers_per_period(state: State) -> None:
    assert [state.coordination.take_slot("tick", 60) for _ in range(3)] == [True, False, False]
    assert state.coordination.take_slot("other", 60)
    assert 0 < state.client.pttl(state.keys.slot("tick")) <= 60_000


def test_every_key_carries_the_clusters_hash_tag(state: State) -> None:
    claim = state.claim()
    take_in(state, node("1"))
    write(state, claim, b"x")
    state.coordination.begin_generation()
    assert state.keys.work(KIND, NodeName("n")) == f"{{eni:{state.cluster}}}:v1:work:maintain:n"
    tag = f"{{eni:{state.cluster}}}:v1:".encode()
    mine = list(state.client.scan_iter(f"*{state.cluster}*", count=1000))
    assert len(mine) >= 6
    assert all(key.startswith(tag) for key in mine)
