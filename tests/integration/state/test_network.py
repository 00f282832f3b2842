"""Addresses of a subnet: reserved before a call, settled after it, forgotten when described again."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from state_under_test import NODE, SETTLE, SUBNET, State, node

from eni_tasks.model.network import Infrastructure, InstanceId, Subnet, SubnetId, VpcId
from eni_tasks.model.state import Outcome, Reservation
from eni_tasks.state.limiter import AcquireResult, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.fixture(autouse=True)
def stored_node(state: State) -> None:
    state.store(node())


def reserve(  # noqa: PLR0913 - one case each
    state: State, count: int, *, free: int = 10, hold: float = 30, subnet: SubnetId = SUBNET, reservation_id: str = ""
) -> Reservation | None:
    """A mutation of some node draws addresses; None if it wasn't let through."""
    wanted = Reservation(subnet_id=subnet, id=reservation_id or uuid.uuid4().hex, count=count)
    claim = state.claim(uuid.uuid4().hex)
    draw = Draw(reservation=wanted, free=free, hold_seconds=hold)
    acquired = state.limiter.acquire(claim, "Any", InstanceId(""), urgent=False, busy_seconds=1, draw=draw)
    assert acquired.result in (AcquireResult.OK, AcquireResult.TAKEN)
    return wanted if acquired.result is AcquireResult.OK else None


def reserved(state: State, count: int) -> Reservation:
    reservation = reserve(state, count)
    assert reservation is not None
    return reservation


def settle(state: State, reservation: Reservation, taken: int) -> Reservation:
    state.runs.record(state.claim(uuid.uuid4().hex), Outcome(reservation=reservation, taken=taken))
    return msgspec.structs.replace(reservation, count=taken)


def held(state: State) -> Mapping[str, int]:
    return state.nodes.read(NODE).reserved


def entries(state: State) -> int:
    """The sum of what the entries hold; it must be the ledger's."""
    return sum(int(entry.rsplit(b"|", 1)[1]) for entry in state.client.zrange(state.keys.ledger_entries, 0, -1))


def describe(state: State, *, ago: float = 0.0, free: int = 10) -> None:
    subnet = Subnet(id=SUBNET, vpc_id=VpcId("vpc-1"), availability_zone="a", cidr="10.0.0.0/24", free=free)
    state.network.put_infrastructure(Infrastructure(subnets={SUBNET: subnet}, described_at=state.now() - ago))


@pytest.mark.parametrize(("count", "granted"), [(10, True), (11, False)])
def test_what_is_free_can_be_reserved(state: State, count: int, *, granted: bool) -> None:
    assert (reserve(state, count) is not None) is granted
    assert held(state) == ({SUBNET: count} if granted else {})


def test_what_others_hold_is_not_free(state: State) -> None:
    reserved(state, 7)
    assert reserve(state, 4) is None
    assert reserve(state, 3) is not None


def test_a_repeated_call_reserves_once(state: State) -> None:
    assert [reserve(state, 6, reservation_id="id") is not None for _ in range(2)] == [True, True]
    assert held(state) == {SUBNET: 6}


def test_six_nodes_and_two_subnets_with_room_for_three_each(state: State) -> None:
    """All choose at once; none goes empty, and no subnet is overdrawn."""
    subnets = [SubnetId("subnet-a"), SubnetId("subnet-b")]
    barrier, got = threading.Barrier(6), list[SubnetId]()

    def choose() -> None:
        barrier.wait()
        got.append(next(s for s in subnets if reserve(state, 8, free=26, subnet=s)))

    threads = [threading.Thread(target=choose) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(got) == {"subnet-a": 3, "subnet-b": 3}
    assert held(state) == {"subnet-a": 24, "subnet-b": 24}


@pytest.mark.parametrize(
    ("taken", "left"),
    [(8, {SUBNET: 8}), (3, {SUBNET: 3}), (0, {}), (9, {SUBNET: 9})],
    ids=["all", "part", "none", "more"],
)
def test_a_reservation_becomes_what_was_taken(state: State, taken: int, left: dict[str, int]) -> None:
    reservation = reserved(state, 8)
    for _ in range(2):  # a repeated call changes nothing
        settle(state, reservation, taken)
        assert held(state) == left
        assert entries(state) == sum(left.values())


def test_what_was_taken_can_be_given_back(state: State) -> None:
    settled = settle(state, reserved(state, 8), 5)
    settle(state, settled, 0)
    assert (held(state), entries(state)) == ({}, 0)


def test_a_description_forgets_what_it_contains(state: State) -> None:
    settle(state, reserved(state, 4), 4)
    state.later(SETTLE + 2)
    settle(state, reserved(state, 3), 3)
    reserved(state, 1)
    describe(state, ago=1)
    assert held(state) == {SUBNET: 3 + 1}
    assert entries(state) == 4


def test_a_call_under_way_counts_until_it_has_certainly_ended(state: State) -> None:
    reserved(state, 4)  # its worker died
    state.later(30 + SETTLE - 1)
    describe(state)
    assert held(state) == {SUBNET: 4}
    state.later(2)
    describe(state)
    assert held(state) == {}


def test_settling_what_a_description_forgot_counts_it_again(state: State) -> None:
    reservation = reserved(state, 4)
    state.later(30 + SETTLE + 1)
    describe(state)
    for _ in range(2):
        settle(state, reservation, 4)
        assert held(state) == {SUBNET: 4}


def test_an_older_description_changes_nothing(state: State) -> None:
    describe(state, free=7)
    settle(state, reserved(state, 4), 4)
    state.later(60)
    describe(state, ago=61, free=99)
    known = state.network.infrastructure()
    assert known is not None
    assert known.subnets[SUBNET].free == 7
    assert held(state) == {SUBNET: 4}


def test_infrastructure_is_decoded_once_per_process(state: State) -> None:
    assert state.network.infrastructure() is None
    describe(state)
    first = state.network.infrastructure()
    assert first is not None
    assert state.nodes.read(NODE).infrastructure is first
    describe(state, ago=-1)
    second = state.network.infrastructure()
    assert second is not None
    assert second.described_at > first.described_at


def test_a_full_subnet_cools_down_for_a_while(state: State) -> None:
    state.network.cool_down(SUBNET, 120)
    assert state.nodes.read(NODE).cooling_down == {SUBNET}
    state.later(119)
    assert state.nodes.read(NODE).cooling_down == {SUBNET}
    state.later(1)
    assert state.nodes.read(NODE).cooling_down == frozenset()


def test_a_subnet_without_a_prefix_is_asked_again_after_waits_that_double(state: State) -> None:
    def noted() -> None:
        state.network.note_no_prefix(SUBNET, first_seconds=120, longest_seconds=300)

    def asked_after(seconds: float) -> bool:
        state.later(seconds - 1)
        assert state.nodes.read(NODE).no_prefix == {SUBNET}
        state.later(1)
        return state.nodes.read(NODE).no_prefix == frozenset()

    noted()
    state.later(10)
    noted()  # of a call that was under way at the same time
    assert state.nodes.read(NODE).cooling_down == frozenset()
    assert asked_after(110)
    noted()
    assert asked_after(240)
    noted()
    assert asked_after(300)  # the longest
    state.later(299)
    noted()
    assert asked_after(300)
    state.later(301)
    noted()  # long after: it starts again
    assert asked_after(120)


@pytest.mark.parametrize("refusal", ["lost", "paused", "wait"])
def test_what_is_not_let_through_reserves_nothing_and_writes_no_journal(state: State, refusal: str) -> None:
    claim = state.claim()
    if refusal == "paused":
        state.limiter.pause("me", "because")
    elif refusal == "lost":
        state.queue.remove(NODE)
    else:
        state.limiter.throttled("A")
    wanted = Reservation(subnet_id=SUBNET, id="x", count=3)
    draw = Draw(reservation=wanted, free=10, hold_seconds=30)
    acquired = state.limiter.acquire(
        claim, "A", InstanceId("i-1"), urgent=True, busy_seconds=1, draw=draw, journal=b"intent"
    )
    assert acquired.result == refusal
    assert (held(state), entries(state), state.nodes.journals()) == ({}, 0, {})


def test_what_is_let_through_has_its_journal(state: State) -> None:
    acquired = state.limiter.acquire(state.claim(), "A", InstanceId(""), urgent=True, busy_seconds=1, journal=b"intent")
    assert acquired.result is AcquireResult.OK
    assert state.nodes.journals() == {NODE: b"intent"}


def test_addresses_that_others_took_cost_no_token(redis_url: str) -> None:
    state = State(redis_url, {"A": (1, 0.001)})
    claim = state.claim()
    draw = Draw(reservation=Reservation(subnet_id=SUBNET, id="x", count=3), free=2, hold_seconds=30)
    acquired = state.limiter.acquire(claim, "A", InstanceId("i-1"), urgent=True, busy_seconds=1, draw=draw)
    assert acquired.result is AcquireResult.TAKEN
    assert state.facts.get([InstanceId("i-1")]) == {}
    assert state.limiter.acquire(claim, "A", InstanceId(""), urgent=True, busy_seconds=1).result is AcquireResult.OK
    state.client.close()
