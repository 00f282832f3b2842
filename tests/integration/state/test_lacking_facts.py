"""Facts of which reads lack something, and instances whose answer can't be used."""

from __future__ import annotations

import pytest
from state_under_test import INSTANCE, SETTLE, State, interface

from eni_tasks.model.state import Outcome, ReadResult

KNOWN = (interface(),)
BUSY = 8


@pytest.fixture(autouse=True)
def old_generation(state: State) -> None:
    state.begin_old_generation()


def merge(state: State, **more: object) -> None:
    known = state.facts.get([INSTANCE]).get(INSTANCE)
    result = ReadResult(instance_id=INSTANCE, interfaces=KNOWN, version=known.version if known else 0, **more)
    assert state.facts.merge([result], started_at=state.now()) == [True]


def test_what_a_read_lacks_is_stored_and_the_facts_stay_known(state: State) -> None:
    merge(state)
    merge(state, lacking={"10.0.0.5": 7.0})
    facts = state.facts.get([INSTANCE])[INSTANCE]
    assert (facts.known, facts.interfaces, facts.lacking) == (True, KNOWN, {"10.0.0.5": 7.0})
    merge(state)
    assert state.facts.get([INSTANCE])[INSTANCE].lacking == {}


def test_while_a_read_lacks_something_a_mutation_stays_pending(state: State) -> None:
    merge(state)
    state.limiter.acquire(state.claim(), "A", INSTANCE, urgent=True, busy_seconds=BUSY)
    state.later(BUSY + SETTLE + 1)
    merge(state, lacking={"10.0.0.5": 7.0})
    assert state.facts.get([INSTANCE])[INSTANCE].mutation_pending
    merge(state)
    assert not state.facts.get([INSTANCE])[INSTANCE].mutation_pending


def test_a_change_starts_the_clocks_again_and_a_refusal_does_not(state: State) -> None:
    merge(state)
    merge(state, lacking={"10.0.0.5": 7.0})
    claim = state.claim()
    state.runs.record(claim, Outcome(instance_id=INSTANCE))
    assert state.facts.get([INSTANCE])[INSTANCE].lacking == {"10.0.0.5": 7.0}
    state.runs.record(claim, Outcome(instance_id=INSTANCE, interfaces=KNOWN))
    assert state.facts.get([INSTANCE])[INSTANCE].lacking == {}


def test_why_an_answer_could_not_be_used_is_kept_until_one_can(state: State) -> None:
    state.facts.note_problems({INSTANCE: "EC2 interface eni-1: no DeviceIndex."})
    facts = state.facts.get([INSTANCE])[INSTANCE]
    assert (facts.known, facts.interfaces, facts.problem) == (False, (), "EC2 interface eni-1: no DeviceIndex.")
    merge(state)
    facts = state.facts.get([INSTANCE])[INSTANCE]
    assert (facts.known, facts.problem) == (True, "")
