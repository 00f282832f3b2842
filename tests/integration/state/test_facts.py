"""Who may overwrite what is known of an instance, and what is to be read again."""

from __future__ import annotations

import pytest
from state_under_test import INSTANCE, LEASE, SETTLE, State, interface

from eni_tasks.model.network import InstanceId, Interface, NodeName
from eni_tasks.model.state import Facts, Outcome, ReadResult
from eni_tasks.model.work import Claim

OLD, NEW = interface("eni-1", "10.0.0.2"), interface("eni-1", "10.0.0.2", "10.0.0.3")
BUSY = 8


@pytest.fixture(autouse=True)
def old_generation(state: State) -> None:
    state.begin_old_generation()


def known(state: State) -> Facts:
    return state.facts.get([INSTANCE])[INSTANCE]


def merged(state: State, shown: Interface, *, started_at: float, version: int, unconfirmed: bool = False) -> bool:
    one = ReadResult(instance_id=INSTANCE, interfaces=(shown,), version=version, unconfirmed=unconfirmed)
    return state.facts.merge([one], started_at=started_at) == [True]


def record(state: State, claim: Claim, answer: Interface | None, *, unconfirmed: bool = False) -> bool:
    """EC2's answer (None: it refused) is written down."""
    interfaces = None if answer is None else (answer,)
    return state.runs.record(claim, Outcome(instance_id=INSTANCE, interfaces=interfaces, unconfirmed=unconfirmed))


def read(state: State, *, ago: float = 0.0, version: int | None = None, unconfirmed: bool = False) -> bool:
    """A describe that began `ago` seconds ago, compared with the facts as they are now, is entered."""
    if version is None:
        version = (
            state.facts.get([INSTANCE])
            .get(INSTANCE, Facts(instance_id=INSTANCE, interfaces=(), described_at=0))
            .version
        )
    return merged(state, NEW, started_at=state.now() - ago, version=version, unconfirmed=unconfirmed)


def begun(state: State) -> Claim:
    """The instance was read long ago, and a mutation of it has just been let through."""
    assert merged(state, OLD, started_at=state.now() - 100, version=0, unconfirmed=False)
    claim = state.claim()
    state.limiter.acquire(claim, "A", INSTANCE, urgent=True, busy_seconds=BUSY)
    return claim


def test_what_was_never_read_is_missing(state: State) -> None:
    claim = state.claim()
    state.limiter.acquire(claim, "A", INSTANCE, urgent=True, busy_seconds=BUSY)
    assert state.facts.get([INSTANCE, InstanceId("i-2")]) == {}


def test_a_first_read(state: State) -> None:
    assert read(state)
    facts = known(state)
    assert facts.interfaces == (NEW,)
    assert facts.version == 1
    assert facts.described_at == pytest.approx(state.now(), abs=1)
    assert 0 < state.client.pttl(state.keys.facts(INSTANCE)) <= 86_400_000


@pytest.mark.parametrize(
    ("ended_ago", "read_ago", "entered"),
    [
        (0, 0, False),
        (SETTLE - 1, 0, False),
        (SETTLE + 1, 0, True),
        (SETTLE + 2, 3, False),
        (100, 99, False),
        (100, 94, True),
    ],
    ids=["at once", "within the settle time", "after it", "read began within it", "slow read", "slow but late enough"],
)
def test_a_read_counts_if_it_began_after_the_mutation_and_the_settle_time(
    state: State, ended_ago: float, read_ago: float, *, entered: bool
) -> None:
    claim = begun(state)
    assert record(state, claim, OLD)
    state.later(ended_ago)
    assert read(state, ago=read_ago) is entered
    assert known(state).interfaces == ((NEW,) if entered else (OLD,))


@pytest.mark.parametrize(("later", "entered"), [(BUSY + SETTLE - 1, False), (BUSY + SETTLE + 1, True)])
def test_a_mutation_without_an_answer_may_go_on_until_its_time_out(
    state: State, later: float, *, entered: bool
) -> None:
    begun(state)
    assert known(state).mutation_pending
    state.later(later)
    assert read(state) is entered
    assert known(state).mutation_pending is not entered


@pytest.mark.parametrize(("ago", "entered"), [(3, False), (2, True), (1, True)], ids=["older", "as old", "newer"])
def test_reads_may_overtake_each_other(state: State, ago: float, *, entered: bool) -> None:
    now = state.now()
    merged(state, OLD, started_at=now - 2, version=0, unconfirmed=False)
    assert merged(state, NEW, started_at=now - ago, version=1, unconfirmed=False) is entered


@pytest.mark.parametrize("version", [0, 2])
def test_a_read_compared_with_other_facts_is_refused(state: State, version: int) -> None:
    assert read(state)
    assert not read(state, version=version)


def test_an_answer_is_entered_at_once(state: State) -> None:
    claim = begun(state)
    assert record(state, claim, NEW)
    facts = known(state)
    assert (facts.interfaces, facts.version, facts.mutation_pending, facts.unconfirmed_since) == ((NEW,), 2, False, 0)
    # It has ended now: no longer at the call's time-out.
    assert facts.mutated_at == pytest.approx(state.now(), abs=1)


def test_an_answer_about_removed_facts_does_not_keep_reads_out(state: State) -> None:
    claim = begun(state)
    state.facts.remove(INSTANCE)
    assert record(state, claim, None)
    state.later(SETTLE + 1)
    assert read(state)
    assert known(state).interfaces == (NEW,)


def test_a_late_answer_does_not_overwrite_a_later_claim(state: State) -> None:
    late = begun(state)
    state.later(LEASE)
    successor = state.claim()
    state.limiter.acquire(successor, "A", INSTANCE, urgent=True, busy_seconds=BUSY)
    assert not record(state, late, NEW)
    record(state, late, None, unconfirmed=False)
    assert known(state).mutation_pending, "the successor's mutation still is"
    assert record(state, successor, NEW)
    assert not record(state, late, OLD)


def test_a_late_answer_is_recorded_while_no_later_claim_mutated(state: State) -> None:
    late = begun(state)
    state.later(LEASE)
    state.claim()
    assert record(state, late, NEW)


def test_a_refusal_ends_what_was_pending(state: State) -> None:
    claim = begun(state)
    record(state, claim, None, unconfirmed=False)
    assert not known(state).mutation_pending
    assert known(state).interfaces == (OLD,)
    state.later(SETTLE)
    assert read(state)


def test_a_refusal_that_contradicts_us_leaves_the_facts_unknown_until_a_read(state: State) -> None:
    claim = begun(state)
    record(state, claim, None, unconfirmed=True)
    assert known(state).mutation_pending
    state.later(SETTLE)
    assert read(state)
    assert not known(state).mutation_pending


def test_an_unconfirmed_read_changes_nothing_but_is_remembered_from_its_first_read_on(state: State) -> None:
    merged(state, OLD, started_at=state.now() - 100, version=0, unconfirmed=False)
    assert read(state, ago=50, unconfirmed=True)
    first = known(state)
    assert (first.interfaces, first.version) == ((OLD,), 2)
    assert first.unconfirmed_since == pytest.approx(state.now() - 50, abs=1)
    assert read(state, unconfirmed=True)
    assert known(state).unconfirmed_since == first.unconfirmed_since
    assert read(state)
    assert (known(state).interfaces, known(state).unconfirmed_since) == ((NEW,), 0)


def test_a_dropped_instance_is_unknown(state: State) -> None:
    read(state)
    state.facts.remove(INSTANCE)
    assert state.facts.get([INSTANCE]) == {}


# -- reads --------------------------------------------------------------------------------------------
A, B = NodeName("a"), NodeName("b")


def take(state: State, limit: int = 9) -> dict[NodeName, str]:
    return state.reads.take(limit, lease_seconds=60)


def test_a_read_is_taken_once_and_completed(state: State) -> None:
    state.reads.request([A, B])
    assert state.reads.due_count() == 2
    taken = take(state)
    assert set(taken) == {A, B}
    assert (take(state), state.reads.due_count()) == ({}, 0)
    state.reads.complete(taken)
    state.later(999)
    assert take(state) == {}


def test_a_delayed_read_is_due_later(state: State) -> None:
    state.reads.request([A], delay_seconds=10)
    assert take(state) == {}
    state.later(10)
    assert set(take(state)) == {A}


def test_a_read_whose_reader_died_is_due_again(state: State) -> None:
    state.reads.request([A])
    take(state)
    state.later(60)
    assert set(take(state)) == {A}


def test_a_node_wanted_again_while_it_is_read_stays(state: State) -> None:
    state.reads.request([A])
    taken = take(state)
    state.reads.request([A])
    state.reads.complete(taken)
    assert set(take(state)) == {A}


def test_reads_come_in_portions_oldest_first(state: State) -> None:
    state.reads.request([B])
    state.later(1)
    state.reads.request([A])
    assert (list(take(state, 1)), list(take(state, 1))) == ([B], [A])


def test_a_removed_node_is_not_read(state: State) -> None:
    state.reads.request([A])
    state.nodes.remove_leftovers(A)
    assert state.reads.due_count() == 0


# -- state generation ---------------------------------------------------------------------------------
NEWS = ReadResult(instance_id=INSTANCE, interfaces=(NEW,), version=0)
SERVED = ReadResult(instance_id=INSTANCE, interfaces=(NEW,), version=0, served=True)


def emptied(state: State) -> str:
    known = state.coordination.begin_generation()
    state.client.delete(state.keys.generation, state.keys.generation_times)
    return known


def test_nothing_is_entered_before_a_generation_has_begun(state: State) -> None:
    emptied(state)
    assert state.facts.merge([NEWS], started_at=state.now()) == [False]


def test_a_read_of_before_the_generation_is_not_entered(state: State) -> None:
    emptied(state)
    began = state.now()
    state.later(1)
    state.coordination.begin_generation()
    assert state.facts.merge([NEWS], started_at=began - 1) == [False]
    assert state.facts.merge([NEWS], started_at=state.now()) == [True]


def test_a_node_served_before_is_believed_after_the_settle_time(state: State) -> None:
    emptied(state)
    state.coordination.begin_generation()
    assert state.facts.merge([SERVED], started_at=state.now()) == [False]
    state.later(SETTLE)
    assert state.facts.merge([SERVED], started_at=state.now()) == [True]


def test_a_process_that_lived_through_the_loss_lets_calls_of_before_end_first(state: State) -> None:
    known = emptied(state)
    for _ in range(2):
        state.coordination.begin_generation()
        state.coordination.begin_generation(known, quiet_seconds=BUSY)
        assert state.facts.merge([NEWS], started_at=state.now()) == [False]
    state.later(BUSY)
    assert state.facts.merge([NEWS], started_at=state.now()) == [True]
