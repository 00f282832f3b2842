"""The stream of events: one entry per mutation, and per act of a person."""

from __future__ import annotations

from collections.abc import Sequence

from eni_tasks.model.network import Value
from eni_tasks.model.state import EventFields
from eni_tasks.state import commands
from eni_tasks.state.connection import Connection
from eni_tasks.state.decoding import text

PORTION_COUNT = 1000  # events read at once while those of one node are searched


class Event(Value, frozen=True):
    """One entry of the stream; the id begins with Redis' time in milliseconds."""

    id: str
    what: str
    fields: dict[str, str]


class Events:
    """Appends and reads; every method raises StateUnavailable when Redis does not answer.

    Args:
        connection: the way to Redis.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._key = connection.keys.events

    def append(self, what: str, fields: EventFields) -> None:
        """Append one entry to the capped stream."""
        self._connection.send(commands.append_event(self._connection.keys, what, fields))

    def after(self, event_id: str, limit: int) -> list[Event]:
        """Read the next events after an id ("0": from the oldest that is kept)."""
        (entries,) = self._connection.send(("XRANGE", self._key, f"({event_id}", "+", "COUNT", limit))
        return _decoded(entries)

    def latest(self, node: str, limit: int) -> list[Event]:
        """Read the last events, of one node or (with "") of all, oldest first."""
        found: list[Event] = []
        before = "+"
        while len(found) < limit:
            count = PORTION_COUNT if node else min(PORTION_COUNT, limit)
            (entries,) = self._connection.send(("XREVRANGE", self._key, before, "-", "COUNT", count))
            events = _decoded(entries)
            found += [event for event in events if not node or event.fields.get("node") == node]
            if len(events) < count:
                break
            before = f"({events[-1].id}"
        return found[:limit][::-1]


def _decoded(entries: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> list[Event]:
    events = []
    for entry_id, values in entries:
        fields = {text(key): text(value) for key, value in values.items()}
        events.append(Event(id=text(entry_id), what=fields.pop("what", ""), fields=fields))
    return events
