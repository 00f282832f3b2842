"""What passes of the collector remember: since when an interface is seen, and which nodes were removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from state_under_test import LEASE, State

from eni_tasks.model.network import InstanceId, InterfaceId
from eni_tasks.model.work import Pass, WorkKind

if TYPE_CHECKING:
    from eni_tasks.model.work import Claim

ONE, TWO = InterfaceId("eni-1"), InterfaceId("eni-2")


@pytest.fixture
def claim(state: State) -> Claim:
    return state.claim(Pass.ORPHANS, WorkKind.FLEET)


def test_a_pass_learns_for_how_long_each_was_seen(state: State, claim: Claim) -> None:
    assert state.orphans.note_unattached(claim, [ONE]) == {ONE: 0.0}
    state.later(20)
    assert state.orphans.note_unattached(claim, [ONE, TWO]) == {ONE: pytest.approx(20, abs=1), TWO: 0.0}


def test_one_that_was_not_seen_in_between_is_new(state: State, claim: Claim) -> None:
    state.orphans.note_unattached(claim, [ONE, TWO])
    state.later(5)
    state.orphans.note_unattached(claim, [TWO])
    state.later(5)
    assert state.orphans.note_unattached(claim, [ONE, TWO]) == {ONE: 0.0, TWO: pytest.approx(10, abs=1)}
    assert state.orphans.note_unattached(claim, []) == {}
    assert state.orphans.seen() == {}


def test_reading_notes_nothing(state: State, claim: Claim) -> None:
    state.orphans.note_unattached(claim, [ONE])
    state.later(7)
    state.orphans.seen()
    state.later(7)
    assert state.orphans.seen() == {ONE: pytest.approx(14, abs=1)}


def test_one_that_was_forgotten_is_new(state: State, claim: Claim) -> None:
    state.orphans.note_unattached(claim, [ONE, TWO])
    state.later(7)
    state.orphans.forget(ONE)
    assert state.orphans.note_unattached(claim, [ONE, TWO]) == {ONE: 0.0, TWO: pytest.approx(7, abs=1)}


@pytest.mark.parametrize("lost", ["lease-over", "another-claim", "work-removed"])
def test_a_pass_that_lost_its_claim_notes_nothing(state: State, claim: Claim, lost: str) -> None:
    state.orphans.note_unattached(claim, [ONE])
    if lost == "work-removed":
        state.client.delete(state.keys.work(claim.kind, claim.name))
    else:
        state.later(LEASE + 1)
    if lost == "another-claim":
        state.claim(Pass.ORPHANS, WorkKind.FLEET)
    assert state.orphans.note_unattached(claim, [TWO]) is None
    assert list(state.orphans.seen()) == [ONE]


def test_removed_nodes_are_remembered_for_an_hour(state: State) -> None:
    assert state.orphans.removed() == {}
    state.orphans.note_removed([InstanceId("i-1"), InstanceId("i-2")])
    state.later(1800)
    state.orphans.note_removed([InstanceId("i-2"), InstanceId("i-3")])
    recent = pytest.approx(0, abs=1)
    assert state.orphans.removed() == {"i-1": pytest.approx(1800, abs=1), "i-2": recent, "i-3": recent}
    state.later(1801)
    assert set(state.orphans.removed()) == {"i-2", "i-3"}
    state.orphans.note_removed([InstanceId("i-4")])
    assert state.client.zcard(state.keys.removed) == 3


def test_all_entries_have_a_lifetime(state: State, claim: Claim) -> None:
    state.orphans.note_unattached(claim, [ONE])
    state.orphans.note_removed([InstanceId("i-1")])
    for key in (state.keys.orphans, state.keys.removed):
        assert 0 < state.client.pttl(key) <= 2 * 3_600_000
