"""The bounded memory of what happened, from which watches are served.

Every change is kept once, already serialised as the line that all watches send. What fell out of the
memory is "too old": whoever wants to continue from there has to list again.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from eni_tasks.sandbox.kube.statuses import ApiError


class Event(NamedTuple):
    """One change: the version it made, whose it is, and the line to send."""

    version: int
    name: str
    line: bytes


class History:
    """The latest events, oldest first. Not locked: the store that owns it is.

    Args:
        version: the version before the first event.
    """

    def __init__(self, version: int) -> None:
        self._events: list[Event] = []
        self._forgotten_version = version

    def append(self, event: Event, limit_count: int) -> None:
        """Remembers an event, and forgets the oldest ones when there are more than the limit."""
        self._events.append(event)
        # A slack of a quarter, so that not every append moves the whole list.
        if len(self._events) > limit_count * 5 // 4:
            self.forget(keep_count=limit_count)

    def forget(self, keep_count: int = 0) -> None:
        """Forgets all but the latest `keep_count` events."""
        cut = max(0, len(self._events) - keep_count)
        if cut:
            self._forgotten_version = self._events[cut - 1].version
            del self._events[:cut]

    def since(self, version: int) -> list[Event]:
        """Finds what happened after a version.

        Args:
            version: a resourceVersion.

        Returns:
            The events, oldest first.

        Raises:
            ApiError: 410 when some of them are forgotten.
        """
        if version < self._forgotten_version:
            raise ApiError(410, f"too old resource version: {version} ({self._forgotten_version + 1})")
        return self._events[bisect_right(self._events, version, key=attrgetter("version")) :]
