"""The Redis server itself: `ports.doctor.RedisServer`.

INFO tells all that matters; CONFIG, which managed servers and ACL users often lack, is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis.exceptions import NoPermissionError

from eni_tasks.adapters.state.connection import translated
from eni_tasks.ports.doctor import ServerLook

if TYPE_CHECKING:
    import redis

    from eni_tasks.adapters.state.keys import Keys


class RedisServer:
    """Asks the server about itself.

    Args:
        client: the connection.
        keys: names of the deployment.
    """

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def look(self) -> ServerLook:
        """See `ports.doctor.RedisServer.look`."""
        with translated():
            try:
                info = self._client.info()
            except NoPermissionError:
                info = {}  # what is not told stays unknown
            slot_ms = self._client.pttl(self._keys.slot("inventory"))
            whole, micros = self._client.time()
        valkey = info.get("valkey_version")
        return ServerLook(
            now=int(whole) + int(micros) / 1e6,
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
