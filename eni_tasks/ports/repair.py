"""What a person may do to work in flight, and how they look back. Raises StateUnavailable as all of the state does."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from eni_tasks.model.network import NodeName
from eni_tasks.ports.state import Event
from eni_tasks.ports.work import WorkKind


class Struck(StrEnum):
    """What `strike_out` answers."""

    DONE = "done"
    CHANGED = "changed"  # the entry is no longer the one that was shown
    HELD = "held"  # a live claim holds the node: its worker may be writing


class Repairs(Protocol):
    """Ending what a dead or stuck worker left behind."""

    def end_claim(self, kind: WorkKind, name: NodeName) -> float | None:
        """End a node's claim now, live or dead; its holder is refused the next mutation.

        Returns:
            The seconds that its lease still had (negative: it had run out), or None if there was no claim.
        """
        ...

    def strike_out(self, name: NodeName, entry: bytes) -> Struck:
        """Strike out a node's journal entry, if it is still `entry` and no live claim holds the node."""
        ...


class History(Protocol):
    """The stream of events, from its end."""

    def latest(self, node: str, limit: int) -> list[Event]:
        """Read the last events, of one node or (with "") of all, oldest first."""
        ...
