"""The state summary: each figure follows what happened, and reading changes nothing."""

from __future__ import annotations

import pytest
from kombu import Connection
from kombu.transport.redis import Channel
from state_under_test import KIND, NODE, SUBNET, State

from eni_tasks.model.network import Infrastructure, InstanceId, InterfaceId, NodeName, Subnet, VpcId
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import Reservation
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.state.limiter import AcquireResult, Draw
from eni_tasks.state.runs import RunEnd
from eni_tasks.state.summary import BreakerSummary, BucketSummary, SubnetSummary, WorkSummary
from eni_tasks.tasks import transport

QUEUES = ("ec2", "resync")


def work(state: State) -> WorkSummary:
    return state.summary.read(QUEUES).work[KIND]


def test_an_empty_redis(state: State) -> None:
    found = state.summary.read(QUEUES)
    assert (found.generation, found.pause, found.infrastructure_at, found.inventory_at) == (None, None, None, None)
    assert found.now == pytest.approx(state.now(), abs=1)
    idle = WorkSummary(pending_count=0, claimed_count=0, waiting_count=0, overdue_count=0, oldest_overdue_seconds=0)
    assert found.work == dict.fromkeys(WorkKind, idle)
    assert found.queues == {"ec2": 0, "resync": 0}
    assert found.buckets == {"A": BucketSummary(size=10, refill_per_second=5, tokens=10, share=1, throttled_at=None)}
    assert (found.breakers, found.subnets, found.orphans_count) == ({}, (), 0)
    assert (found.deficit_count, found.deficit_since) == (0, None)


def test_what_pending_nodes_are_doing(state: State) -> None:
    names = [NodeName(f"n{number}") for number in range(1, 5)]
    state.store_nodes(*names)
    state.queue.enqueue(KIND, [(name, Urgency.DEFICIT) for name in names])
    state.claim("n1")
    state.queue.finish(state.claim("n2"), again_after_seconds=100)
    found = work(state)
    assert (found.pending_count, found.claimed_count, found.waiting_count, found.overdue_count) == (4, 1, 1, 0)
    state.later(25)  # messages are overdue after 20 s, the claim lives for 30
    found = work(state)
    assert (found.pending_count, found.claimed_count, found.waiting_count, found.overdue_count) == (4, 1, 1, 2)
    assert found.oldest_overdue_seconds == pytest.approx(25, abs=3)
    assert state.queue.requeue_overdue(KIND, 9) == ["n3", "n4"]
    assert work(state).oldest_overdue_seconds == pytest.approx(25, abs=3)  # sent again is not served
    state.later(6)
    assert (work(state).claimed_count, work(state).overdue_count) == (0, 2)
    state.later(21)
    assert work(state).overdue_count == 3  # the lease ran out 22 s ago


def test_kinds_are_counted_apart(state: State) -> None:
    state.queue.enqueue(WorkKind.PUBLISH, [(NODE, Urgency.DEFICIT)])
    found = state.summary.read(QUEUES)
    assert {kind: each.pending_count for kind, each in found.work.items()} == {
        WorkKind.MAINTAIN: 0,
        WorkKind.PUBLISH: 1,
        WorkKind.FLEET: 0,
    }


def test_more_pending_nodes_than_are_asked_for_at_once(state: State) -> None:
    names = [NodeName(f"n{number}") for number in range(2300)]
    state.queue.enqueue(KIND, [(name, Urgency.DEFICIT) for name in names])
    for name in (names[0], names[1100], names[2299]):
        state.claim(name)
    assert (work(state).pending_count, work(state).claimed_count) == (2300, 3)


def test_messages_that_wait_in_celerys_queues(state: State) -> None:
    options = {"global_keyprefix": state.keys.broker}
    transport.install()  # kombu keeps the first class that it finds for a URL, for all tests of this process
    with Connection(state.url, transport_options=options) as connection:
        channel = connection.channel()
        assert isinstance(channel, Channel)
        for queue, count in {"ec2": 3, "apiserver": 1}.items():
            with connection.SimpleQueue(queue) as sending:
                for _ in range(count):
                    sending.put({})
    assert state.summary.read(QUEUES).queues == {"ec2": 3, "resync": 0}


def test_a_bucket_is_shown_as_acquire_finds_it(redis_url: str) -> None:
    state = State(redis_url, {"A": (10, 0.5)})  # so slow that a busy machine makes no difference
    claim = state.claim()

    def acquires() -> bool:
        answer = state.limiter.acquire(claim, "A", InstanceId(""), urgent=True, busy_seconds=1)
        return answer.result is AcquireResult.OK

    def bucket() -> BucketSummary:
        return state.summary.read(QUEUES).buckets["A"]

    for _ in range(4):
        assert acquires()
    assert bucket().tokens == pytest.approx(6, abs=0.9)
    state.limiter.throttled("A")
    assert (bucket().tokens, bucket().share) == (pytest.approx(0, abs=0.9), pytest.approx(0.5, abs=0.1))
    assert bucket().throttled_at == pytest.approx(state.now(), abs=3)
    state.later(18.2)
    # The share is whole again after 10 s; what was filled by then is 0.75 of the rate.
    assert (bucket().tokens, bucket().share) == (pytest.approx(7.85, abs=0.9), 1)
    whole = int(bucket().tokens)
    assert [acquires() for _ in range(whole)] == [True] * whole
    assert bucket().tokens < 2
    state.client.close()


@pytest.mark.parametrize(
    ("age", "share", "tokens"),
    [(0, 0.5, 0), (2, 0.6, 1.1), (10, 1, 7.5), (12, 1, 9.5), (99, 1, 10)],
    ids=["at once", "growing", "whole again", "a while later", "full"],
)
def test_fill_and_rate_after_a_halving(redis_url: str, age: float, share: float, tokens: float) -> None:
    state = State(redis_url, {"A": (10, 1)})
    halved_at = state.now()
    times = dict.fromkeys(("at", "halved_at", "throttled_at"), round(halved_at * 1000))
    state.client.hset(state.keys.bucket("A"), mapping={"tokens": 0, "factor": 0.5, **times})
    state.later(age)
    seen = state.summary.read(QUEUES).buckets["A"]
    late = state.now() - halved_at - age  # the time that this took
    assert seen.throttled_at == pytest.approx(halved_at)
    assert 0 <= seen.share - share <= 0.05 * late + 1e-6
    assert 0 <= seen.tokens - tokens <= late + 1e-6
    state.client.close()


def test_breakers_and_the_pause(state: State) -> None:
    now = state.now()
    state.limiter.open_breaker("A", "UnauthorizedOperation", 60)
    state.limiter.pause("ada", "the VPC is being changed")
    found = state.summary.read(QUEUES)
    assert found.breakers == {"A": BreakerSummary(until=pytest.approx(now + 60, abs=2), why="UnauthorizedOperation")}
    assert found.pause is not None
    assert (found.pause.who, found.pause.why, found.pause.since) == (
        "ada",
        "the VPC is being changed",
        pytest.approx(now, abs=2),
    )
    state.limiter.close_breaker("A")
    state.limiter.resume()
    found = state.summary.read(QUEUES)
    assert (found.breakers, found.pause) == ({}, None)


def test_subnets_with_what_was_taken_since_and_the_full_ones(state: State) -> None:
    subnet = Subnet(id=SUBNET, vpc_id=VpcId("vpc-1"), availability_zone="z", cidr="10.0.0.0/24", free=20)
    state.network.put_infrastructure(Infrastructure(subnets={SUBNET: subnet}, described_at=state.now()))
    draw = Draw(reservation=Reservation(subnet_id=SUBNET, id="r", count=7), free=20, hold_seconds=1)
    state.limiter.acquire(state.claim(), "Any", InstanceId(""), urgent=True, busy_seconds=1, draw=draw)
    state.network.cool_down(SUBNET, 100)
    state.network.note_no_prefix(SUBNET, first_seconds=90, longest_seconds=90)
    found = state.summary.read(QUEUES)
    assert found.infrastructure_at == pytest.approx(found.now, abs=2)
    assert found.subnets == (
        SubnetSummary(
            id=SUBNET,
            availability_zone="z",
            free=20,
            reserved=7,
            cooling_down_until=pytest.approx(found.now + 100, abs=2),
            size=251,  # of 256, AWS keeps five
            no_prefix_until=pytest.approx(found.now + 90, abs=2),
        ),
    )
    assert found.subnets[0].available == 13
    state.later(101)
    [later] = state.summary.read(QUEUES).subnets
    assert (later.cooling_down_until, later.no_prefix_until) == (None, None)


def test_interfaces_that_are_left_behind(state: State) -> None:
    claim = state.claim(Pass.ORPHANS, WorkKind.FLEET)
    state.orphans.note_unattached(claim, [InterfaceId("eni-1"), InterfaceId("eni-2")])
    assert state.summary.read(QUEUES).orphans_count == 2
    state.orphans.forget(InterfaceId("eni-1"))
    assert state.summary.read(QUEUES).orphans_count == 1


def test_nodes_that_lack_addresses_the_first_of_them_since(state: State) -> None:
    state.store_nodes("n1", "n2")

    def note_deficit(name: str) -> None:
        state.runs.end(state.claim(name), RunEnd(in_deficit=True))

    note_deficit("n1")
    state.later(100)
    note_deficit("n2")
    note_deficit("n1")
    found = state.summary.read(QUEUES)
    assert (found.deficit_count, found.deficit_since) == (2, pytest.approx(found.now - 100, abs=2))
    state.runs.end(state.claim("n1"), RunEnd(in_deficit=False))
    found = state.summary.read(QUEUES)
    assert (found.deficit_count, found.deficit_since) == (1, pytest.approx(found.now, abs=2))


def test_the_last_complete_read(state: State) -> None:
    now = state.now()
    state.client.hset(state.keys.switches, "read_at", round(now * 1000))
    assert state.summary.read(QUEUES).inventory_at == pytest.approx(now, abs=0.01)


def test_reading_changes_nothing(state: State) -> None:
    generation = state.coordination.begin_generation()
    state.claim()
    state.limiter.throttled("A")

    def content() -> dict[bytes, bytes]:
        prefix = state.keys.generation.removesuffix("generation")
        return {key: state.client.dump(key) or b"" for key in state.client.scan_iter(f"{prefix}*", count=1000)}

    before = content()
    assert state.summary.read(QUEUES).generation == generation.id
    assert len(before) >= 4
    assert content() == before


def test_the_number_of_round_trips_does_not_grow_with_buckets_and_queues(redis_url: str) -> None:
    state = State(redis_url, {f"A{number}": (10, 5) for number in range(50)})
    state.summary.read(QUEUES)
    exchanges = state.exchanges()
    found = state.summary.read([f"q{number}" for number in range(50)])
    assert (len(found.buckets), len(found.queues)) == (50, 50)
    assert len(exchanges) == 2, "everything, and whether the infrastructure is still the one that is known"
    state.client.close()
