"""What collectors remember: since when an interface is seen, and whose nodes went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from eni_tasks.adapters.state.orphans import RedisOrphans
from state_under_test import LEASE, State

from eni_tasks.model.network import InstanceId, InterfaceId
from eni_tasks.model.work import WorkKind
from eni_tasks.state.connection import Scripts

if TYPE_CHECKING:
    from eni_tasks.model.work import Claim

ONE, TWO = InterfaceId("eni-1"), InterfaceId("eni-2")


@pytest.fixture
def memory(state: State) -> RedisOrphans:
    return RedisOrphans(state.client, Scripts(state.client), state.keys)


@pytest.fixture
def claim(state: State) -> Claim:
    return state.claim("orphans", WorkKind.REFRESH)


def test_a_pass_learns_for_how_long_each_was_seen(state: State, memory: RedisOrphans, claim: Claim) -> None:
    assert memory.note(claim, [ONE]) == {ONE: 0.0}
    state.later(20)
    assert memory.note(claim, [ONE, TWO]) == {ONE: pytest.approx(20, abs=1), TWO: 0.0}


def test_who_was_not_seen_in_between_is_new(state: State, memory: RedisOrphans, claim: Claim) -> None:
    memory.note(claim, [ONE, TWO])
    state.later(5)
    memory.note(claim, [TWO])
    state.later(5)
    assert memory.note(claim, [ONE, TWO]) == {ONE: 0.0, TWO: pytest.approx(10, abs=1)}
    assert memory.note(claim, []) == {}
    assert memory.seen() == {}


def test_looking_notes_nothing(state: State, memory: RedisOrphans, claim: Claim) -> None:
    memory.note(claim, [ONE])
    state.later(7)
    memory.seen()
    state.later(7)
    assert memory.seen() == {ONE: pytest.approx(14, abs=1)}


def test_one_that_was_forgotten_is_new(state: State, memory: RedisOrphans, claim: Claim) -> None:
    memory.note(claim, [ONE, TWO])
    state.later(7)
    memory.forget(ONE)
    assert memory.note(claim, [ONE, TWO]) == {ONE: 0.0, TWO: pytest.approx(7, abs=1)}


@pytest.mark.parametrize("lost", ["lease-over", "another-claim", "work-forgotten"])
def test_who_lost_the_claim_notes_nothing(state: State, memory: RedisOrphans, claim: Claim, lost: str) -> None:
    memory.note(claim, [ONE])
    if lost == "work-forgotten":
        state.client.delete(state.keys.work(claim.kind, claim.name))
    else:
        state.later(LEASE + 1)
    if lost == "another-claim":
        state.claim("orphans", WorkKind.REFRESH)
    assert memory.note(claim, [TWO]) is None
    assert list(memory.seen()) == [ONE]


def test_removed_nodes_are_remembered_for_an_hour(state: State, memory: RedisOrphans) -> None:
    assert memory.removed() == {}
    memory.note_removed([InstanceId("i-1"), InstanceId("i-2")])
    state.later(1800)
    memory.note_removed([InstanceId("i-2"), InstanceId("i-3")])
    recent = pytest.approx(0, abs=1)
    assert memory.removed() == {"i-1": pytest.approx(1800, abs=1), "i-2": recent, "i-3": recent}
    state.later(1801)
    assert set(memory.removed()) == {"i-2", "i-3"}
    memory.note_removed([InstanceId("i-4")])
    assert state.client.zcard(state.keys.removed) == 3


def test_nothing_is_kept_for_ever(state: State, memory: RedisOrphans, claim: Claim) -> None:
    memory.note(claim, [ONE])
    memory.note_removed([InstanceId("i-1")])
    for key in (state.keys.orphans, state.keys.removed):
        assert 0 < state.client.pttl(key) <= 2 * 3_600_000
