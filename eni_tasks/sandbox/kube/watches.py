"""Watch streams: what happened since a version, then what happens, until time is up.

Yields ready lines; `server` sends them. All present watches are broken and silenced here, because a stream
must notice it while it waits.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from eni_tasks.sandbox.kube.statuses import KIND, ApiError
from eni_tasks.sandbox.kube.store import API_VERSION, NodeStore

if TYPE_CHECKING:
    from collections.abc import Iterator


# How long a stream waits before it checks that its client is still connected.
_IDLE_SECONDS = 1.0
# The real server sends its last bookmark this long before a watch ends.
_LAST_BOOKMARK_SECONDS = 2.0
IDLE = b""


class WatchBroken(Exception):
    """The connection of a stream is to be closed without an end of the stream, as when a load balancer fails."""


class Watches:
    """Makes streams from a store.

    Args:
        store: the nodes.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._knobs = store.knobs
        self._breaks_count = 0
        self._silences_count = 0
        self._stopped = False

    def break_all(self) -> None:
        """End all present streams as a broken connection does."""
        with self._store.changed:
            self._breaks_count += 1
            self._store.changed.notify_all()

    def silence_all(self) -> None:
        """Let all present streams stay connected and send nothing more; new ones work."""
        with self._store.changed:
            self._silences_count += 1

    def stop(self) -> None:
        """End all streams, also those that start later."""
        with self._store.changed:
            self._stopped = True
            self._store.changed.notify_all()

    def stream(
        self, version: int, *, only_name: str = "", bookmarks: bool = False, timeout_seconds: float | None = None
    ) -> Iterator[bytes]:
        """Make one stream.

        Args:
            version: send what came after it; 0 sends all present objects first.
            only_name: the one node wanted, or "" for all.
            bookmarks: whether the client wants them.
            timeout_seconds: when the stream ends, or None for the server's own choice.

        Yields:
            Lines to send, several at once if there are; `IDLE` about once a second when there are none.

        Raises:
            ApiError: 410 before the first line, when `gone_as_http` is set.
            WatchBroken: when all streams are ended.
        """
        if version and self._knobs.gone_as_http:
            with self._store.changed:
                self._store.history.since(version)
        return self._lines(version, only_name, timeout_seconds or self._knobs.watch_seconds, bookmarks=bookmarks)

    def _lines(self, version: int, only_name: str, timeout_seconds: float, *, bookmarks: bool) -> Iterator[bytes]:
        started = time.monotonic()
        deadline, bookmarked = started + timeout_seconds, started
        breaks_count, silences_count = self._breaks_count, self._silences_count
        if version == 0:
            page = self._store.page(0, "", only_name)
            version = page.version
            yield b"".join(b'{"type":"ADDED","object":%b}\n' % stored.raw for stored in page.items)
        while True:
            now = time.monotonic()
            bookmark_at = _next_bookmark(bookmarked, deadline, self._knobs.bookmark_seconds) if bookmarks else deadline
            if silences_count == self._silences_count:
                if now >= deadline:
                    return
                if now >= bookmark_at:
                    bookmarked = now
                    yield _bookmark(version)
                    continue
            wait_seconds = min(_IDLE_SECONDS, max(0.0, min(bookmark_at, deadline) - now))
            try:
                with self._store.changed:
                    if self._store.version <= version or silences_count != self._silences_count:
                        self._store.changed.wait(wait_seconds or _IDLE_SECONDS)
                    if self._stopped or breaks_count != self._breaks_count:
                        raise WatchBroken
                    silent = silences_count != self._silences_count
                    events = [] if silent else self._store.history.since(version)
                    version = version if silent else max(version, self._store.version)
            except ApiError as error:
                yield b'{"type":"ERROR","object":%b}\n' % msgspec.json.encode(error.body)
                return
            yield b"".join(event.line for event in events if only_name in ("", event.name))


def _next_bookmark(bookmarked: float, deadline: float, every_seconds: float) -> float:
    regular, last = bookmarked + every_seconds, deadline - _LAST_BOOKMARK_SECONDS
    return min(regular, last) if bookmarked < last else regular


def _bookmark(version: int) -> bytes:
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    bookmark = {"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata}
    return msgspec.json.encode({"type": "BOOKMARK", "object": bookmark}) + b"\n"
