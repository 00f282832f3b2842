"""The fence and the token buckets in front of EC2's mutations: `ports.work.Budgets` on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.adapters.state.base import DAY_MS, encode, milliseconds, redis_ms
from eni_tasks.adapters.state.connection import Scripts, translated
from eni_tasks.ports.work import READS, Claim, Draw, Grant, Pause, Spent

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

    from eni_tasks.adapters.state.keys import Keys
    from eni_tasks.model.network import InstanceId

_decode_pause = msgspec.json.Decoder(Pause).decode


class RedisBudgets:
    """Buckets shared by all workers.

    Args:
        client: the connection.
        scripts: the operations.
        keys: names of the deployment.
        buckets: per action its size and refill per second; size 0, or no entry, means no budget.
    """

    def __init__(
        self, client: redis.Redis, scripts: Scripts, keys: Keys, buckets: Mapping[str, tuple[float, float]]
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._keys = keys
        self._buckets = buckets

    def spend(  # noqa: PLR0913 - see the port
        self,
        claim: Claim,
        action: str,
        instance_id: InstanceId,
        *,
        urgent: bool,
        busy_seconds: float,
        draw: Draw | None = None,
        journal: bytes = b"",
    ) -> Spent:
        """See `ports.work.Budgets.spend`."""
        size, refill = self._buckets.get(action, (0.0, 0.0))
        keys = [
            self._keys.work(claim.kind, claim.name),
            self._keys.pending(claim.kind),
            self._keys.switches,
            self._keys.breaker(action),
            self._keys.budget(action),
            self._keys.ledger,
            self._keys.ledger_entries,
            self._keys.journal,
            self._keys.breaker(READS),
        ]
        if instance_id:
            keys.append(self._keys.facts(instance_id))
        args: list[str | bytes | float] = [
            claim.name,
            claim.token,
            size,
            refill,
            int(urgent),
            milliseconds(busy_seconds),
            DAY_MS,
        ]
        args.append(journal)
        if draw is not None:
            wanted = draw.reservation
            args += [wanted.subnet_id, wanted.id, wanted.count, draw.free, milliseconds(draw.hold_seconds)]
        grant, wait_ms, why = self._scripts.run("spend", keys, args)
        if grant == b"paused":
            pause = _decode_pause(why)
            return Spent(grant=Grant.PAUSED, wait_seconds=wait_ms / 1000, why=f"paused by {pause.who}: {pause.why}")
        return Spent(grant=Grant(grant.decode()), wait_seconds=wait_ms / 1000, why=why.decode())

    def throttled(self, action: str) -> None:
        """See `ports.work.Budgets.throttled`."""
        self._scripts.run("throttled", [self._keys.budget(action)], [])

    def open_breaker(self, action: str, why: str, seconds: float) -> None:
        """See `ports.work.Budgets.open_breaker`."""
        key = self._keys.breaker(action)
        with translated():
            until = redis_ms(self._client) + milliseconds(seconds)
            pipe = self._client.pipeline(transaction=True)
            pipe.hdel(key, "probe")
            pipe.hset(key, mapping={"until": until, "why": why})
            pipe.pexpire(key, milliseconds(seconds) + DAY_MS)
            pipe.execute()

    def close_breaker(self, action: str) -> None:
        """See `ports.work.Budgets.close_breaker`."""
        with translated():
            self._client.delete(self._keys.breaker(action))

    def pause(self, who: str, why: str) -> None:
        """See `ports.work.Budgets.pause`."""
        with translated():
            entry = encode(Pause(who=who, why=why, since=redis_ms(self._client) / 1000))
            self._client.hset(self._keys.switches, "pause", entry)

    def resume(self) -> None:
        """See `ports.work.Budgets.resume`."""
        with translated():
            self._client.hdel(self._keys.switches, "pause")

    def paused(self) -> Pause | None:
        """See `ports.work.Budgets.paused`."""
        with translated():
            entry = self._client.hget(self._keys.switches, "pause")
        return _decode_pause(entry) if entry else None
