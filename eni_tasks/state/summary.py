"""The state summary: work, queues, rate limits, subnets and their like, for people and for monitoring.

Reads only; not even a bucket's fill is written. Two or three round trips, plus one per thousand pending pieces
of work. Nodes and their figures are not here: they cost a plan each (`services.status`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from ipaddress import IPv4Network

from eni_tasks.model.network import Infrastructure, NodeName, SubnetId, Value
from eni_tasks.model.work import NODE_WORK, Pause, WorkKind
from eni_tasks.state.connection import Command, Connection, Script, time_ms
from eni_tasks.state.decoding import number, prose, scored, seconds, text
from eni_tasks.state.limiter import LIMITS, decode_pause
from eni_tasks.state.network import NetworkCache, decode_ledger, without_prefix

PORTION_COUNT = 1000  # work hashes asked for at once
_KEPT_BY_AWS = 5  # addresses of each subnet: network, router, DNS, one for later, broadcast


class WorkState(StrEnum):
    """What one piece of work is doing right now."""

    RUNNING = "running"  # a live claim holds it
    WAITING = "waiting"  # until a back-off or a wait for a token is over
    QUEUED = "queued"  # a message is on its way
    OVERDUE = "overdue"  # no worker took it in time; it is requeued


WORK_TIMES = ("lease", "not_before", "sent", "unserved_since")
_UNTIL = (WorkState.RUNNING, WorkState.WAITING, WorkState.QUEUED)  # in the order of the first three


class WorkStatus(Value, frozen=True):
    """One piece of work; `until` is the end of the lease, of the wait, or of the time that the message is given.

    `unserved_seconds` is for how long no run has begun since it was enqueued, or since its wait was over; 0 while
    a worker is at it, and while it waits. It was enqueued `enqueued_count` times since it was last done.
    """

    state: WorkState
    until: float = 0.0
    unserved_seconds: float = 0.0
    enqueued_count: int = 0


class WorkSummary(Value, frozen=True):
    """The work of one kind: `pending_count` is all of it.

    `overdue_count` of it has been unserved for longer than a message is given, and is requeued.
    `oldest_overdue_seconds` is for how long the oldest work has been unserved, requeued or not; 0 if none is.
    `most_merged_count` is how often the work that was enqueued most often was enqueued since it was last done.
    """

    pending_count: int
    claimed_count: int
    waiting_count: int
    overdue_count: int
    oldest_overdue_seconds: float
    most_merged_count: int = 0


class BucketSummary(Value, frozen=True):
    """The token bucket of one EC2 action; `size` 0 means that there is no limit.

    `share` is the part of the refill rate that is in force: 1, or less since EC2 throttled.
    `throttled_at` is when EC2 last did, None if not within the hour.
    """

    size: float
    refill_per_second: float
    tokens: float
    share: float
    throttled_at: float | None

    def wait_seconds(self, *, urgent: bool) -> float:
        """How long until a node may take a token, if no other takes one before; 0 if it may now.

        The last tokens are kept back as in acquire.lua.
        """
        missing = 1 + self.size // (50 if urgent else 20) - self.tokens
        rate = self.refill_per_second * self.share
        return missing / rate if self.size and missing > 0 and rate else 0.0


class BreakerSummary(Value, frozen=True):
    """An open breaker: no worker makes that call; from `until` on one caller at a time may probe."""

    until: float
    why: str


class SubnetSummary(Value, frozen=True):
    """A subnet of the known VPCs: `free` addresses when it was described, `reserved` of them taken since.

    `size` is how many addresses it has in all, without the five that AWS keeps; 0 while unknown. `cooling_down_until`
    is set while no node chooses the subnet, because it reported that it is full; `no_prefix_until` while none asks it
    for a /28 prefix, because it reported that it has none.
    """

    id: SubnetId
    availability_zone: str
    free: int
    reserved: int
    cooling_down_until: float | None
    no_prefix_until: float | None = None
    size: int = 0

    @property
    def available(self) -> int:
        """Addresses that can still be taken; never negative."""
        return max(0, self.free - self.reserved)


class StateSummary(Value, frozen=True):
    """Everything but the nodes, as of `now`. All times are Redis' own, in seconds since 1970.

    `generation` is None when Redis lost its data and no watcher has noticed yet. `infrastructure_at` is when the
    description of VPCs, subnets and groups began, `inventory_at` when the last complete read of all instances
    did; None before the first. `orphans_count` is what the last pass of the collector saw and has not deleted.
    `read_failure` is why the last read of EC2 failed, "" if it succeeded. `deficit_count` nodes lack addresses that
    they could have, the first of them since `deficit_since`.
    """

    now: float
    generation: str | None
    pause: Pause | None
    work: dict[WorkKind, WorkSummary]
    queues: dict[str, int]
    buckets: dict[str, BucketSummary]
    breakers: dict[str, BreakerSummary]
    subnets: tuple[SubnetSummary, ...]
    infrastructure_at: float | None
    inventory_at: float | None
    read_failure: str
    orphans_count: int
    deficit_count: int
    deficit_since: float | None


class Summary:
    """Reads the state summary, and the status of single pieces of work.

    Every method raises StateUnavailable when Redis does not answer.

    Args:
        connection: the way to Redis.
        network: for the infrastructure, which it keeps decoded.
        buckets: per EC2 action its size and refill per second.
        overdue_seconds: how long a message is given before its work is requeued.
    """

    def __init__(
        self,
        connection: Connection,
        network: NetworkCache,
        buckets: Mapping[str, tuple[float, float]],
        *,
        overdue_seconds: float,
    ) -> None:
        self._connection = connection
        self._keys = connection.keys
        self._network = network
        self._buckets = buckets
        self._overdue_seconds = overdue_seconds

    def read(self, queues: Sequence[str]) -> StateSummary:
        """Read everything.

        Args:
            queues: names of the Celery queues whose waiting messages are counted.
        """
        keys = self._keys
        commands: dict[str, Command | Script] = {
            "time": ("TIME",),
            "generation": ("GET", keys.generation),
            "switches": ("HMGET", keys.switches, "pause", "read_at", "read_failure"),
            "ledger": ("HGETALL", keys.ledger),
            "cooldowns": ("ZRANGE", keys.cooldowns, 0, -1, "WITHSCORES"),
            "no_prefix": ("HGETALL", keys.no_prefix),
            "orphans": ("ZCARD", keys.orphans),
            "deficits": ("ZCARD", keys.deficits),
            "first_deficit": ("ZRANGE", keys.deficits, 0, 0, "WITHSCORES"),
            "buckets": Script(
                "read_buckets",
                [keys.bucket(action) for action in self._buckets],
                [figure for bucket in self._buckets.values() for figure in bucket],
            ),
        }
        commands |= {f"breaker {action}": ("HMGET", keys.breaker(action), "until", "why") for action in self._breakers}
        commands |= {f"pending {kind}": ("ZRANGE", keys.pending(kind), 0, -1) for kind in WorkKind}
        commands |= {f"queue {queue}": ("LLEN", keys.queue(queue)) for queue in queues}
        answers = dict(zip(commands, self._connection.send(*commands.values()), strict=True))
        infrastructure = self._network.infrastructure()
        now = time_ms(answers["time"]) / 1000
        pause, read_at, failure = answers["switches"]
        held = decode_ledger(keys, answers["ledger"])
        cooling = {text(subnet): until / 1000 for subnet, until in scored(answers["cooldowns"])}
        first_deficit = scored(answers["first_deficit"])
        return StateSummary(
            now=now,
            generation=text(answers["generation"]) if answers["generation"] else None,
            pause=decode_pause(keys, pause) if pause else None,
            work={kind: self._work(kind, answers[f"pending {kind}"]) for kind in WorkKind},
            queues={queue: int(answers[f"queue {queue}"]) for queue in queues},
            buckets={
                action: _bucket(bucket, values)
                for (action, bucket), values in zip(self._buckets.items(), answers["buckets"], strict=True)
            },
            breakers={
                action: BreakerSummary(until=seconds(f"{keys.breaker(action)} until", until), why=prose(why))
                for action in self._breakers
                for until, why in [answers[f"breaker {action}"]]
                if until is not None
            },
            subnets=_subnets(
                infrastructure,
                held,
                {name: until for name, until in cooling.items() if until > now},
                without_prefix(keys, answers["no_prefix"], now),
            ),
            infrastructure_at=infrastructure.described_at if infrastructure else None,
            inventory_at=seconds(f"{keys.switches} read_at", read_at) or None,
            read_failure=prose(failure),
            orphans_count=answers["orphans"],
            deficit_count=answers["deficits"],
            deficit_since=first_deficit[0][1] / 1000 if first_deficit else None,
        )

    def work_of_kind(self, kind: WorkKind) -> Mapping[NodeName, WorkStatus]:
        """The status of everything of a kind of node work that is queued, running or waiting."""
        (names,) = self._connection.send(("ZRANGE", self._keys.pending(kind), 0, -1))
        found: dict[NodeName, WorkStatus] = {}
        for start in range(0, len(names), PORTION_COUNT):
            portion = [NodeName(text(name)) for name in names[start : start + PORTION_COUNT]]
            found |= zip(portion, self._statuses([self._keys.work(kind, name) for name in portion]), strict=True)
        return found

    def work_of_node(self, name: NodeName) -> Mapping[WorkKind, WorkStatus]:
        """The status of one node's work; a kind that has nothing to do is missing."""
        scores = self._connection.send(*(("ZSCORE", self._keys.pending(kind), name) for kind in NODE_WORK))
        statuses = self._statuses([self._keys.work(kind, name) for kind in NODE_WORK])
        answers = zip(NODE_WORK, scores, statuses, strict=True)
        return {kind: status for kind, score, status in answers if score is not None}

    @property
    def _breakers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._buckets, LIMITS)))

    def _statuses(self, keys: Sequence[str]) -> list[WorkStatus]:
        *answers, time = self._connection.send(*(("HMGET", key, "revision", *WORK_TIMES) for key in keys), ("TIME",))
        now = time_ms(time) / 1000
        return [
            _status(
                [seconds(f"{key} {field}", value) for field, value in zip(WORK_TIMES, times, strict=True)],
                now,
                int(number(f"{key} revision", revision)),
            )
            for key, (revision, *times) in zip(keys, answers, strict=True)
        ]

    def _work(self, kind: WorkKind, pending: Sequence[bytes]) -> WorkSummary:
        statuses: list[WorkStatus] = []
        for start in range(0, len(pending), PORTION_COUNT):
            names = [text(name) for name in pending[start : start + PORTION_COUNT]]
            statuses += self._statuses([self._keys.work(kind, name) for name in names])
        states = [status.state for status in statuses]
        unserved = [status.unserved_seconds for status in statuses]
        return WorkSummary(
            pending_count=len(pending),
            claimed_count=states.count(WorkState.RUNNING),
            waiting_count=states.count(WorkState.WAITING),
            overdue_count=sum(each > self._overdue_seconds for each in unserved),
            oldest_overdue_seconds=max(unserved, default=0.0),
            most_merged_count=max((status.enqueued_count for status in statuses), default=0),
        )


def _status(times: Sequence[float], now: float, enqueued_count: int) -> WorkStatus:
    *ends, unserved_since = times
    unserved_seconds = max(0.0, now - unserved_since) if unserved_since else 0.0
    for state, until in zip(_UNTIL, ends, strict=True):
        if until > now:
            return WorkStatus(
                state=state, until=until, unserved_seconds=unserved_seconds, enqueued_count=enqueued_count
            )
    # A claim whose lease ran out: its work is unserved since then.
    late_seconds = unserved_seconds or now - max(ends)
    return WorkStatus(
        state=WorkState.OVERDUE, until=max(ends), unserved_seconds=late_seconds, enqueued_count=enqueued_count
    )


def _bucket(bucket: tuple[float, float], values: Sequence[bytes]) -> BucketSummary:
    tokens, share, throttled_at = values
    return BucketSummary(
        size=bucket[0],
        refill_per_second=bucket[1],
        tokens=float(tokens),
        share=float(share),
        throttled_at=float(throttled_at) / 1000 if throttled_at else None,
    )


def _subnets(
    infrastructure: Infrastructure | None,
    held: Mapping[str, int],
    cooling: Mapping[str, float],
    no_prefix: Mapping[str, float],
) -> tuple[SubnetSummary, ...]:
    return tuple(
        SubnetSummary(
            id=subnet.id,
            availability_zone=subnet.availability_zone,
            free=subnet.free,
            reserved=held.get(subnet.id, 0),
            cooling_down_until=cooling.get(subnet.id),
            no_prefix_until=no_prefix.get(subnet.id),
            size=_size(subnet.cidr),
        )
        for subnet in (infrastructure.subnets.values() if infrastructure else ())
    )


def _size(cidr: str) -> int:
    try:
        return max(0, IPv4Network(cidr, strict=False).num_addresses - _KEPT_BY_AWS)
    except ValueError:
        return 0
