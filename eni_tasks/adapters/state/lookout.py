"""Shared state at a glance: `ports.lookout.Lookout` on Redis.

Two or three round trips, plus one per thousand pending nodes. Nothing is written, not even a bucket's
fill: what `spend` would compute is computed here from the same fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.adapters.state.base import seconds
from eni_tasks.adapters.state.connection import translated
from eni_tasks.ports.lookout import BreakerLook, BudgetLook, Look, SubnetLook, WorkLook
from eni_tasks.ports.work import READS, Pause, WorkKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import redis

    from eni_tasks.adapters.state.keys import Keys
    from eni_tasks.adapters.state.store import RedisStore

PORTION = 1000  # work hashes asked for at once
GROWTH_PER_SECOND = 0.05  # of a halved rate, as in scripts/spend.lua
BUDGET_FIELDS = ("tokens", "at", "factor", "halved_at", "throttled_at")

Pending = list[tuple[bytes, float]]
_decode_pause = msgspec.json.Decoder(Pause).decode


class RedisLookout:
    """Reads everything but the nodes.

    Args:
        client: the connection.
        keys: names of the deployment.
        store: for the infrastructure, which it keeps decoded.
        buckets: per EC2 action its size and refill per second.
    """

    def __init__(
        self, client: redis.Redis, keys: Keys, store: RedisStore, buckets: Mapping[str, tuple[float, float]]
    ) -> None:
        self._client = client
        self._keys = keys
        self._store = store
        self._buckets = buckets

    def look(self, queues: Sequence[str]) -> Look:
        """See `ports.lookout.Lookout.look`."""
        keys, actions, infrastructure = self._keys, list(self._buckets), self._store.infrastructure()
        with translated():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            pipe.get(keys.epoch)
            pipe.hmget(keys.switches, "pause", "read_at")
            pipe.hgetall(keys.ledger)
            pipe.zrange(keys.benched, 0, -1, withscores=True)
            pipe.zcard(keys.orphans)
            pipe.zcard(keys.needy)
            pipe.zrange(keys.needy, 0, 0, withscores=True)
            pipe.hmget(keys.breaker(READS), "until", "why")
            for kind in WorkKind:
                pipe.zrange(keys.pending(kind), 0, -1, withscores=True)
            for queue in queues:
                pipe.llen(keys.queue(queue))
            for action in actions:
                pipe.hmget(keys.budget(action), BUDGET_FIELDS)
                pipe.hmget(keys.breaker(action), "until", "why")
            (whole, micros), epoch, (pause, read_at), ledger, benched, orphans, needy, first_needy, unread, *rest = (
                pipe.execute()
            )
        now = whole + micros / 1e6
        pending = dict(zip(WorkKind, rest, strict=False))
        lengths = rest[len(WorkKind) :][: len(queues)]
        buckets, breakers = rest[-2 * len(actions) :: 2], rest[-2 * len(actions) + 1 :: 2]
        held = {subnet.decode(): int(count) for subnet, count in ledger.items()}
        full = {subnet.decode(): until / 1000 for subnet, until in benched if until > now * 1000}
        return Look(
            now=now,
            epoch=epoch.decode() if epoch else None,
            pause=_decode_pause(pause) if pause else None,
            work={kind: self._work(kind, entries, now) for kind, entries in pending.items()},
            queues=dict(zip(queues, lengths, strict=True)),
            budgets={
                action: budget_look(self._buckets[action], values, now)
                for action, values in zip(actions, buckets, strict=True)
            },
            breakers={
                action: BreakerLook(until=seconds(until), why=(why or b"").decode())
                for action, (until, why) in zip([*actions, READS], [*breakers, unread], strict=True)
                # That of reads is not probed: a good read closes it, or its time.
                if until is not None and (action != READS or seconds(until) > now)
            },
            subnets=tuple(
                SubnetLook(
                    id=subnet.id,
                    availability_zone=subnet.availability_zone,
                    free=subnet.free,
                    reserved=held.get(subnet.id, 0),
                    benched_until=full.get(subnet.id),
                )
                for subnet in (infrastructure.subnets.values() if infrastructure else ())
            ),
            infrastructure_at=infrastructure.described_at if infrastructure else None,
            inventory_at=seconds(read_at) if read_at else None,
            orphans_count=orphans,
            needy_count=needy,
            needy_since=first_needy[0][1] / 1000 if first_needy else None,
        )

    def _work(self, kind: WorkKind, pending: Pending, now: float) -> WorkLook:
        """Tell what each pending entry is doing; the work hashes know."""
        claimed, waiting = 0, 0
        for start in range(0, len(pending), PORTION):
            with translated():
                pipe = self._client.pipeline(transaction=False)
                for name, _ in pending[start : start + PORTION]:
                    pipe.hmget(self._keys.work(kind, name.decode()), "lease", "not_before")
                answers = pipe.execute()
            for lease, not_before in answers:
                if seconds(lease) > now:
                    claimed += 1
                elif seconds(not_before) > now:
                    waiting += 1
        late = [due / 1000 for _, due in pending if due / 1000 <= now]
        return WorkLook(
            pending_count=len(pending),
            claimed_count=claimed,
            waiting_count=waiting,
            overdue_count=len(late),
            oldest_overdue_seconds=now - min(late) if late else 0.0,
        )


def budget_look(bucket: tuple[float, float], values: Sequence[bytes | None], now: float) -> BudgetLook:
    """Compute a bucket's fill and rate as `spend` would.

    Args:
        bucket: its size and refill per second.
        values: the fields of its hash, in the order of BUDGET_FIELDS.
        now: Redis' time in seconds.

    Returns:
        The bucket as it stands now; a forgotten one is full.
    """
    size, refill = bucket
    tokens, at, factor, halved_at, throttled_at = values
    share, halved = float(factor or 1), seconds(halved_at)
    growing = (1 - share) / GROWTH_PER_SECOND  # seconds from the halving until the rate is whole again

    def area(time: float) -> float:
        """Sum of the share since the halving."""
        age = max(0.0, time - halved)
        return age - growing * (1 - share) / 2 + GROWTH_PER_SECOND * max(0.0, growing - age) ** 2 / 2

    return BudgetLook(
        size=size,
        refill_per_second=refill,
        tokens=size if tokens is None else min(size, float(tokens) + refill * (area(now) - area(seconds(at)))),
        share=min(1.0, share + GROWTH_PER_SECOND * max(0.0, now - halved)),
        throttled_at=seconds(throttled_at) if throttled_at is not None else None,
    )
