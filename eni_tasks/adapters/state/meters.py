"""The shared sums of all processes: `ports.meters.Meters` in one hash.

An answer that is lost makes redis-py send the addition again, so seconds may count twice on a bad day,
as they are lost when a process is killed: sums are for people and alerts, and nothing decides by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from eni_tasks.adapters.state.connection import translated
from eni_tasks.observability.meter import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

    from eni_tasks.adapters.state.keys import Keys

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(tuple[str, str, tuple[str, ...]]).decode


class RedisMeters:
    """Adds and reads.

    Args:
        client: the connection.
        keys: names of the deployment.
    """

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def add(self, sums: Mapping[Part, float]) -> None:
        """See `ports.meters.Meters.add`."""
        with translated():
            pipe = self._client.pipeline(transaction=False)
            for part, value in sums.items():
                pipe.hincrbyfloat(self._keys.meters, _encode(part), value)
            pipe.execute()

    def read(self) -> dict[Part, float]:
        """See `ports.meters.Meters.read`."""
        with translated():
            stored = cast("dict[bytes, bytes]", self._client.hgetall(self._keys.meters))
        return {Part(*_decode(field)): float(value) for field, value in stored.items()}
