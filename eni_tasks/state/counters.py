"""The sums of what all processes counted, in one hash.

An answer that is lost makes redis-py send the addition again, so some counts may be added twice, as some are
lost when a process is killed: sums are for people and alerts, and no decision depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from eni_tasks.observability.counters import Series
from eni_tasks.state.connection import Connection
from eni_tasks.state.decoding import decoded, number, text

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(tuple[str, str, tuple[str, ...]]).decode


class SharedCounters:
    """Sums that only grow, until Redis loses its data.

    Args:
        connection: the way to Redis.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._key = connection.keys.counters

    def add(self, sums: Mapping[Series, float]) -> None:
        """Add to the shared sums, in one round trip.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        self._connection.send(*(("HINCRBYFLOAT", self._key, _encode(each), value) for each, value in sums.items()))

    def read(self) -> dict[Series, float]:
        """All sums.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        (entries,) = self._connection.send(("HGETALL", self._key))
        found: dict[Series, float] = {}
        for each, value in entries.items():
            series = decoded(f"{self._key} {text(each)}", each, _decode)
            if series is not None:
                found[Series(*series)] = number(f"{self._key} {text(each)}", value)
        return found
