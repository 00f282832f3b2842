"""What passes of the orphan collector saw before. All times are Redis' own.

If it is lost, interfaces count as seen for the first time and wait again. Every method raises
StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Collection

from eni_tasks.model.network import InstanceId, InterfaceId
from eni_tasks.model.work import Claim
from eni_tasks.state.connection import Connection, milliseconds, time_ms
from eni_tasks.state.decoding import scored, text

# Longer than any grace period: a pass comes as soon as one that waits is due.
SEEN_KEPT_MS = 2 * 3_600_000
REMOVED_KEPT_MS = 3_600_000


class OrphanHistory:
    """Since when interfaces have been seen unattached, and which instances' nodes were removed.

    Args:
        connection: the way to Redis.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._keys = connection.keys

    def note_unattached(self, claim: Claim, interface_ids: Collection[InterfaceId]) -> dict[InterfaceId, float] | None:
        """Note what a pass saw unattached, and delete all other entries: those were not so without a break.

        Returns:
            For how many seconds passes have seen each, 0 for a new one; None if the claim has ended
            (nothing was noted).
        """
        names = list(interface_ids)
        keys = [self._keys.work(claim.kind, claim.name), self._keys.orphans]
        answer = self._connection.run("record_unattached", keys, [claim.token, SEEN_KEPT_MS, *names])
        if answer is None:
            return None
        return {name: age_ms / 1000 for name, age_ms in zip(names, answer, strict=True)}

    def seen(self) -> dict[InterfaceId, float]:
        """For how many seconds passes have seen each interface that is noted; notes nothing."""
        return {InterfaceId(name): age for name, age in self._ages(self._keys.orphans).items()}

    def forget(self, interface_id: InterfaceId) -> None:
        """Delete the entry of an interface that was deleted, or that is in use."""
        self._connection.send(("ZREM", self._keys.orphans, interface_id))

    def put_last(self, interface_id: InterfaceId, wait_seconds: float) -> None:
        """Let an interface that EC2 refused to delete be due in the next pass, after all that are due already.

        Args:
            interface_id: the interface.
            wait_seconds: for how long passes have to see an interface before it is deleted.
        """
        since = self._connection.now_ms() - milliseconds(wait_seconds)
        self._connection.send(("ZADD", self._keys.orphans, "XX", since, interface_id))

    def note_removed(self, instance_ids: Collection[InstanceId]) -> None:
        """Note instances (at least one) whose node was removed; kept for an hour."""
        now_ms = self._connection.now_ms()
        self._connection.send(
            ("ZREMRANGEBYSCORE", self._keys.removed, "-inf", now_ms - REMOVED_KEPT_MS),
            ("ZADD", self._keys.removed, *(word for each in instance_ids for word in (now_ms, each))),
            ("PEXPIRE", self._keys.removed, REMOVED_KEPT_MS),
        )

    def removed(self) -> dict[InstanceId, float]:
        """For how many seconds the node of each noted instance has been gone."""
        ages = self._ages(self._keys.removed)
        return {InstanceId(name): age for name, age in ages.items() if age * 1000 < REMOVED_KEPT_MS}

    def _ages(self, key: str) -> dict[str, float]:
        time, flat = self._connection.send(("TIME",), ("ZRANGE", key, 0, -1, "WITHSCORES"))
        now_ms = time_ms(time)
        return {text(name): max(0.0, now_ms - float(since)) / 1000 for name, since in scored(flat)}
