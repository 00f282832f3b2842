"""What a late write may leave of a node that was removed: nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from state_under_test import NODE

from eni_tasks.model.cilium_node import CiliumNode, Metadata, Spec
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.model.work import Finished, WorkKind
from eni_tasks.state.runs import NewObjects, RunEnd

if TYPE_CHECKING:
    from state_under_test import State


def stored(state: State, name: str = NODE) -> None:
    metadata = Metadata(name=name, uid="u", resource_version="1")
    state.runs.store(NewObjects(objects=[CiliumNode(metadata=metadata, spec=Spec(instance_id="i-1"))]))


def remove(state: State) -> None:
    assert state.nodes.remove(NODE, uid="u")
    state.queue.remove(NODE)
    state.nodes.remove_leftovers(NODE)


def test_the_late_end_of_a_run_writes_nothing(state: State) -> None:
    stored(state)
    claim = state.claim()
    remove(state)
    end = RunEnd(memory=Memory(uid="u"), in_deficit=True, publish=Urgency.DEFICIT, again_after_seconds=30.0)
    ended = state.runs.end(claim, end)
    assert (ended.finished, ended.publish) == (Finished.STALE, False)
    assert state.nodes.leftovers() == set()
    assert state.coordination.progress().deficit_node is None


def test_the_end_of_a_run_that_claimed_after_the_removal_writes_nothing(state: State) -> None:
    stored(state)
    remove(state)
    claim = state.claim()  # a message that was on its way
    end = RunEnd(memory=Memory(uid="u"), in_deficit=True, publish=Urgency.DEFICIT, again_after_seconds=30.0)
    assert state.runs.end(claim, end).finished is Finished.DONE
    assert state.nodes.leftovers() == set()
    assert state.left_over() == []


def test_a_run_that_was_overtaken_writes_nothing_of_what_it_learned(state: State) -> None:
    stored(state)
    claim = state.claim()
    state.later(31)
    later = state.claim()
    state.runs.end(claim, RunEnd(memory=Memory(uid="u", failures=7), in_deficit=True))
    assert state.nodes.in_deficit() == []
    state.runs.end(later, RunEnd())
    assert state.nodes.read(NODE).stored_memory == Memory()


def test_no_work_is_enqueued_for_a_node_that_is_not_stored(state: State) -> None:
    assert state.queue.enqueue(WorkKind.MAINTAIN, [(NODE, Urgency.EMPTY)], stored_only=True) == []
    assert state.left_over() == []
    stored(state)
    assert state.queue.enqueue(WorkKind.MAINTAIN, [(NODE, Urgency.EMPTY)], stored_only=True) == [NODE]


def test_leftovers_are_found_wherever_they_are(state: State) -> None:
    stored(state, "known")
    state.client.hset(state.keys.memory, "a", "{}")
    state.client.hset(state.keys.journal, "b", "{}")
    for key in (state.keys.reads, state.keys.deficits, state.keys.pending(WorkKind.PUBLISH)):
        state.client.zadd(key, {key[-3:]: 1.0, "known": 1.0})
    expected = {"a", "b", *(key[-3:] for key in (state.keys.reads, state.keys.deficits)), "ish"}
    assert state.nodes.leftovers() == expected
