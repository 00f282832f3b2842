"""The changes of the objects: the latest in memory, for watches, and all of them in a file, if there is one.

Each change is serialised once, as the line that all watches send. A change that memory no longer holds is
"too old": a client that wants to continue from there must list again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from eni_tasks.sandbox.kube.statuses import ApiError

RESTORED = "RESTORED"  # the type of a line that is no change of an object: a backup was restored


class Event(NamedTuple):
    """One change: the version it made, the name of the object, and the line to send."""

    version: int
    name: str
    line: bytes


class History:
    """The latest events, oldest first. Not locked: its owner, the store, is.

    Args:
        version: the version before the first event.
    """

    def __init__(self, version: int) -> None:
        self._events: list[Event] = []
        self._forgotten_version = version

    def append(self, event: Event, limit_count: int) -> None:
        """Remember an event, and forget the oldest ones when there are more than the limit."""
        self._events.append(event)
        # A slack of a quarter, so that not every append moves the whole list.
        if len(self._events) > limit_count * 5 // 4:
            self.forget(keep_count=limit_count)

    def forget(self, keep_count: int = 0) -> None:
        """Forget all but the latest `keep_count` events."""
        cut = max(0, len(self._events) - keep_count)
        if cut:
            self._forgotten_version = self._events[cut - 1].version
            del self._events[:cut]

    def since(self, version: int) -> list[Event]:
        """Find what happened after a version.

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


class Journal:
    """An append-only file of changes, which lets a store outlive its process, as etcd does for a real server.

    A restarted server knows the objects and their versions, but not the events between them: a watch from an
    earlier version gets 410, as from a real server whose watch cache is empty.

    Args:
        path: of the file, which is created when it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.version = 0  # of the last change
        # Unbuffered: one write per change, so that a killed server loses nothing that it answered.
        self._file = path.open("ab", buffering=0)

    def load(self) -> dict[str, dict[str, Any]]:
        """Returns the objects after the last change, by name."""
        objects: dict[str, dict[str, Any]] = {}
        for line in self._path.read_bytes().splitlines():
            event = msgspec.json.decode(line)
            if event["type"] == RESTORED:
                objects.clear()
                self.version = int(event["version"])
                continue
            metadata = event["object"]["metadata"]
            self.version = max(self.version, int(metadata["resourceVersion"]))
            if event["type"] == "DELETED":
                del objects[metadata["name"]]
            else:
                objects[metadata["name"]] = event["object"]
        return objects

    def restored(self, version: int, lines: Iterable[bytes]) -> None:
        """Note that a backup was restored: what follows is all there is, and what came before it stays in the file.

        Args:
            version: of the backup.
            lines: its objects, each with its line end.
        """
        # In one write, so that a killed server restored all of it, or nothing.
        self._file.write(b"".join((b'{"type":"%b","version":"%d"}\n' % (RESTORED.encode(), version), *lines)))

    def append(self, line: bytes) -> None:
        """Add a change.

        Args:
            line: with its line end.
        """
        self._file.write(line)
