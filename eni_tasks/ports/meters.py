"""The sums of what all processes counted, shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from eni_tasks.observability.meter import Part


class Meters(Protocol):
    """Sums that only grow, until Redis is emptied; raises StateUnavailable when Redis does not answer."""

    def add(self, sums: Mapping[Part, float]) -> None:
        """Add to the shared sums, in one round trip."""
        ...

    def read(self) -> dict[Part, float]:
        """All sums."""
        ...
