"""What the parts of the store share: the connection, the scripts, the names, and how values are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import redis

    from eni_tasks.adapters.state.connection import Scripts
    from eni_tasks.adapters.state.keys import Keys

DAY_MS = 86_400_000
PORTION = 200  # items per script call: a bigger one would keep everybody else waiting

encode = msgspec.json.encode
decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class Part:
    """One part of the store.

    Args:
        client: the connection.
        scripts: the operations.
        keys: names of the deployment.
        settle_seconds: EC2's reads may lag this long behind its answers.
    """

    def __init__(self, client: redis.Redis, scripts: Scripts, keys: Keys, *, settle_seconds: float) -> None:
        self._client = client
        self._scripts = scripts
        self._keys = keys
        self._settle_ms = round(settle_seconds * 1000)


def milliseconds(seconds: float) -> int:
    """Redis keeps whole milliseconds."""
    return round(seconds * 1000)


def seconds(value: bytes | None) -> float:
    """Milliseconds as Redis keeps them, in seconds; absent is 0."""
    return int(float(value)) / 1000 if value else 0.0


def redis_ms(client: redis.Redis) -> int:
    """Redis' time; call it within `translated`."""
    whole, micros = client.time()
    return whole * 1000 + micros // 1000
