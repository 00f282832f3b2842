"""The state generation: what makes a state count as lost or as older than what processes wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from state_under_test import INSTANCE, KIND, NODE, interface

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.state import ReadResult
from eni_tasks.state.limiter import AcquireResult

if TYPE_CHECKING:
    from state_under_test import State

QUIET = 30.0


def read(state: State) -> bool:
    """Accept a read that begins now."""
    facts = state.facts.get([INSTANCE]).get(INSTANCE)
    version = facts.version if facts else 0
    result = ReadResult(instance_id=INSTANCE, interfaces=(interface(),), version=version)
    (accepted,) = state.facts.merge([result], started_at=state.now())
    return accepted


def pretend_another_run(state: State) -> None:
    """Let the state be one that another run of a server confirmed: a restart, or a promoted replica."""
    state.client.hset(state.keys.generation_times, "run_id", "0123456789abcdef")


def test_a_generation_is_confirmed_again_and_again(state: State) -> None:
    first = state.coordination.begin_generation()
    second = state.coordination.begin_generation(first, quiet_seconds=QUIET)
    assert (second.id, second.beat) == (first.id, first.beat + 1)
    assert read(state)


def test_another_run_of_the_server_begins_another_generation(state: State) -> None:
    first = state.coordination.begin_generation()
    assert read(state)
    state.later(1)
    pretend_another_run(state)
    second = state.coordination.begin_generation(None, quiet_seconds=QUIET)  # even if no process remembers
    assert second.id != first.id
    assert not state.facts.get([INSTANCE])[INSTANCE].known
    assert not read(state)  # an EC2 call of before may still be running
    state.later(QUIET + 1)
    assert read(state)
    assert state.facts.get([INSTANCE])[INSTANCE].known


def test_a_state_with_fewer_beats_than_remembered_went_back(state: State) -> None:
    known = state.coordination.begin_generation()
    for _ in range(3):
        known = state.coordination.begin_generation(known)
    state.client.hset(state.keys.generation_times, "beat", known.beat - 1)
    assert state.coordination.begin_generation(known, quiet_seconds=QUIET).id != known.id


def test_an_older_generation_than_the_remembered_one_went_back(state: State) -> None:
    older = state.coordination.begin_generation()
    kept = state.client.hgetall(state.keys.generation_times)
    pretend_another_run(state)
    state.later(10)
    newer = state.coordination.begin_generation(older)
    state.client.set(state.keys.generation, older.id)
    state.client.hset(state.keys.generation_times, mapping=kept)
    third = state.coordination.begin_generation(newer, quiet_seconds=QUIET)
    assert third.id not in (older.id, newer.id)


def test_the_second_watcher_takes_the_generation_that_the_first_began(state: State) -> None:
    known = state.coordination.begin_generation()
    other = state.coordination.begin_generation()
    state.client.delete(state.keys.generation, state.keys.generation_times)
    state.later(1)
    first = state.coordination.begin_generation(known, quiet_seconds=QUIET)
    second = state.coordination.begin_generation(other, quiet_seconds=QUIET)
    assert first.id == second.id != known.id


def test_no_work_is_claimed_before_a_watcher_has_confirmed_the_state(state: State) -> None:
    state.coordination.begin_generation()
    claim = state.claim()
    pretend_another_run(state)
    with pytest.raises(StateUnavailable):
        state.queue.claim(KIND, NODE)
    acquired = state.limiter.acquire(claim, "A", INSTANCE, urgent=True, busy_seconds=5)
    assert acquired.result is AcquireResult.UNCONFIRMED
    state.coordination.begin_generation()
    assert state.limiter.acquire(claim, "A", INSTANCE, urgent=True, busy_seconds=5).result is AcquireResult.OK


def test_what_the_collector_saw_before_is_forgotten(state: State) -> None:
    state.coordination.begin_generation()
    state.client.zadd(state.keys.orphans, {"eni-1": 1.0})
    state.orphans.note_removed([INSTANCE])
    pretend_another_run(state)
    state.coordination.begin_generation()
    assert state.orphans.seen() == {}
    assert state.orphans.removed() == {}
