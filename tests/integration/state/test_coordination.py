"""What all processes share: the state generation, and who starts a periodic pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state_under_test import State


def test_a_generation_lasts_until_redis_is_emptied(state: State) -> None:
    generation = state.coordination.begin_generation().id
    assert state.coordination.begin_generation().id == state.summary.read(()).generation == generation
    state.client.delete(state.keys.generation)
    assert state.coordination.begin_generation().id != generation


def test_a_slot_is_one_callers_per_period(state: State) -> None:
    assert [state.coordination.take_slot("tick", 60) for _ in range(3)] == [True, False, False]
    assert state.coordination.take_slot("other", 60)
    assert 0 < state.client.pttl(state.keys.slot("tick")) <= 60_000


def test_a_slot_without_end_ends_with_the_period(state: State) -> None:
    key = state.keys.slot("tick")
    state.client.set(key, 1)
    assert not state.coordination.take_slot("tick", 60)
    assert 0 < state.client.pttl(key) <= 60_000
    state.client.set(key, 1, ex=3600)  # the setting was an hour before
    assert not state.coordination.take_slot("tick", 60)
    assert 0 < state.client.pttl(key) <= 60_000
