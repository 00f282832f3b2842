"""What collectors remember: `ports.orphans.OrphanMemory` on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from eni_tasks.adapters.state.base import redis_ms
from eni_tasks.adapters.state.connection import Scripts, translated
from eni_tasks.model.network import InstanceId, InterfaceId

if TYPE_CHECKING:
    from collections.abc import Collection

    import redis

    from eni_tasks.adapters.state.keys import Keys
    from eni_tasks.ports.work import Claim

# Longer than any grace: a pass comes as soon as one that waits is due.
SEEN_KEPT_MS = 2 * 3_600_000
REMOVED_KEPT_MS = 3_600_000


class RedisOrphans:
    """The memory of the collectors.

    Args:
        client: the connection.
        scripts: the operations.
        keys: names of the deployment.
    """

    def __init__(self, client: redis.Redis, scripts: Scripts, keys: Keys) -> None:
        self._client = client
        self._scripts = scripts
        self._keys = keys

    def note(self, claim: Claim, interface_ids: Collection[InterfaceId]) -> dict[InterfaceId, float] | None:
        """See `ports.orphans.OrphanMemory.note`."""
        names = list(interface_ids)
        keys = [self._keys.work(claim.kind, claim.name), self._keys.orphans]
        answer = self._scripts.run("note_orphans", keys, [claim.token, SEEN_KEPT_MS, *names])
        if answer is None:
            return None
        return {name: age_ms / 1000 for name, age_ms in zip(names, answer, strict=True)}

    def seen(self) -> dict[InterfaceId, float]:
        """See `ports.orphans.OrphanMemory.seen`."""
        return {InterfaceId(name): age for name, age in self._ages(self._keys.orphans).items()}

    def forget(self, interface_id: InterfaceId) -> None:
        """See `ports.orphans.OrphanMemory.forget`."""
        with translated():
            self._client.zrem(self._keys.orphans, interface_id)

    def note_removed(self, instance_ids: Collection[InstanceId]) -> None:
        """See `ports.orphans.OrphanMemory.note_removed`."""
        with translated():
            now = redis_ms(self._client)
            pipe = self._client.pipeline(transaction=False)
            pipe.zremrangebyscore(self._keys.removed, "-inf", now - REMOVED_KEPT_MS)
            pipe.zadd(self._keys.removed, dict.fromkeys(instance_ids, now))
            pipe.pexpire(self._keys.removed, REMOVED_KEPT_MS)
            pipe.execute()

    def removed(self) -> dict[InstanceId, float]:
        """See `ports.orphans.OrphanMemory.removed`."""
        ages = self._ages(self._keys.removed)
        return {InstanceId(name): age for name, age in ages.items() if age * 1000 < REMOVED_KEPT_MS}

    def _ages(self, key: str) -> dict[str, float]:
        with translated():
            now = redis_ms(self._client)
            entries = self._client.zrange(key, 0, -1, withscores=True)
        scored = cast("list[tuple[bytes, float]]", entries)
        return {name.decode(): max(0.0, now - since) / 1000 for name, since in scored}
