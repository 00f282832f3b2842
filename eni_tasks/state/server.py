"""The Redis server itself, not what this system keeps in it.

INFO tells all that matters; CONFIG, which managed servers and ACL users often lack, is not needed.
"""

from __future__ import annotations

from typing import Any

from redis.exceptions import NoPermissionError

from eni_tasks.model.network import Value
from eni_tasks.state.connection import Connection, time_ms


class ServerDescription(Value, frozen=True):
    """A Redis server as it describes itself; "" and None where it does not say.

    `now` is its clock. `resync_slot_seconds` is what is left of the slot that a watcher took when it last
    started the periodic read (None: no watcher did within a period).
    """

    now: float
    product: str
    version: str
    mode: str
    role: str
    eviction: str
    used_bytes: int
    most_bytes: int
    persistence: str
    persistence_error: str
    resync_slot_seconds: float | None


class RedisServer:
    """Asks the server about itself.

    Args:
        connection: the way to Redis.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def describe(self) -> ServerDescription:
        """Ask for everything, in two round trips.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        with self._connection.translated():
            try:
                info = self._connection.client.info()
            except NoPermissionError:
                info = {}  # what the server does not say stays unknown
        slot_ms, time = self._connection.send(("PTTL", self._connection.keys.slot("inventory")), ("TIME",))
        valkey = info.get("valkey_version")
        return ServerDescription(
            now=time_ms(time) / 1000,
            product="Valkey" if valkey else "Redis",
            version=str(valkey or info.get("redis_version", "")),
            mode=str(info.get("redis_mode") or info.get("server_mode", "")),
            role=str(info.get("role", "")),
            eviction=str(info.get("maxmemory_policy", "")),
            used_bytes=int(info.get("used_memory", 0)),
            most_bytes=int(info.get("maxmemory", 0)),
            persistence=_persistence(info),
            persistence_error=_persistence_error(info),
            resync_slot_seconds=slot_ms / 1000 if slot_ms > 0 else None,
        )


def _persistence(info: dict[str, Any]) -> str:
    if info.get("aof_enabled"):
        return "append-only file"
    # A server that never wrote a snapshot says that the last one began when it started.
    return "snapshots" if info.get("rdb_saves") or info.get("rdb_last_bgsave_time_sec", -1) != -1 else ""


def _persistence_error(info: dict[str, Any]) -> str:
    failed = [
        name
        for name in ("rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status")
        if info.get(name, "ok") != "ok"
    ]
    return ", ".join(failed)
