"""List, watch, list again: passes every change of an object to a service, whatever the API server does.

The loop never ends because of an error. It moves to the next resource version only after the service has taken the
changes of the current one, so an error in between repeats changes and loses none. Full lists show deletions that a gap
in the watch has hidden: at the start, after an expired version, on request, and every few minutes.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from eni_tasks.errors import ClusterUnavailable, EniTasksError
from eni_tasks.model.cilium_node import version_key
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import Changes, Feed, HistoryGone, Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")

# The API server ends a watch after this long; jittered, so that several watchers don't return at the same time.
_WATCH_SECONDS = (240, 300)
# A watch that ends sooner without an error counts as failed: else it would be reopened without a pause.
_SHORTEST_WATCH_SECONDS = 0.5
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
# No pause and no page that goes to Redis takes the loop this long; only a silent watch does, and it is added.
_STUCK_SECONDS = 60.0


class Sink(Protocol[T]):
    """Takes in what a feed shows: `services.ingest.Ingest` and `services.pending_pods.PendingPods`."""

    def take_list(self, pages: Iterator[Page[T]]) -> tuple[int, str]:
        """Take in a complete list; returns the number of objects, and the list's version."""
        ...

    def changed(self, objects: Sequence[T]) -> None:
        """Take in objects as they are now."""
        ...

    def removed(self, name: str, uid: str) -> None:
        """Take in a deletion."""
        ...


class Watching(Generic[T]):
    """The loop over one feed.

    Args:
        what: the objects, for the log.
        feed: lists and watches.
        sink: takes in the changes.
        relist_seconds: how often all objects are listed again although no error occurred.
        silence_seconds: the longest that the feed lets a watch be silent.
    """

    def __init__(
        self, what: str, feed: Feed[T], sink: Sink[T], *, relist_seconds: float, silence_seconds: float
    ) -> None:
        self._what = what
        self._feed = feed
        self._sink = sink
        self._relist_seconds = relist_seconds
        self._stopping = threading.Event()
        self._list_wanted = threading.Event()
        self._list_due_at = 0.0
        self._version = ""
        self._failures_count = 0
        self._stuck_seconds = silence_seconds + _STUCK_SECONDS
        self._active_at = time.monotonic()
        self.follows = False  # whether all objects were listed, and the API server's last answer was no refusal

    @property
    def stuck(self) -> bool:
        """Whether the loop has been silent for longer than any of its steps can take."""
        return time.monotonic() - self._active_at > self._stuck_seconds

    def run(self) -> None:
        """Lists and watches until `stop`."""
        while not self._stopping.is_set():
            try:
                self._turn()
            except HistoryGone as error:
                self._version = ""
                self._pause(error)
            except EniTasksError as error:
                self._pause(error)
            except Exception as error:  # noqa: BLE001 - logged with its trace; a watcher must not end
                self._pause(error)

    def stop(self) -> None:
        """Ends `run` soon, from another thread."""
        self._stopping.set()
        self._feed.interrupt()

    def relist(self) -> None:
        """Asks for a full list soon, from another thread: Redis may have lost what was stored."""
        self._list_wanted.set()
        self._feed.interrupt()

    def _turn(self) -> None:
        if not self._version or self._list_wanted.is_set() or time.monotonic() >= self._list_due_at:
            self._list()
        self._check_history()
        started_at = time.monotonic()
        # A watch that lasts beyond the time of the next list would delay it.
        until_list_seconds = max(1, round(self._list_due_at - started_at))
        timeout_seconds = min(random.randint(*_WATCH_SECONDS), until_list_seconds)  # noqa: S311 - jitter
        with closing(self._feed.changes(self._version, timeout_seconds)) as stream:
            for changes in stream:
                self._take(changes)
                if self._interrupted():
                    return
        if time.monotonic() - started_at < _SHORTEST_WATCH_SECONDS and not self._interrupted():
            raise ClusterUnavailable(f"watching {self._what}: the watch ended at once")
        self._failures_count = 0

    def _check_history(self) -> None:
        """Make sure that the watch can continue: a server whose etcd was restored waits for a version to come.

        Raises:
            HistoryGone: the API server's history lies below the version that was seen.
        """
        present = self._feed.version()
        if version_key(present) < version_key(self._version):
            raise HistoryGone(f"the API server is at version {present}, below {self._version} that was seen before")

    def _interrupted(self) -> bool:
        return self._stopping.is_set() or self._list_wanted.is_set()

    def _take(self, changes: Changes[T]) -> None:
        self._active_at, self.follows = time.monotonic(), True
        if changes.changed:
            self._sink.changed(changes.changed)
        for name, uid in changes.gone:
            self._sink.removed(name, uid)
        if changes.resource_version != self._version:
            self._version = changes.resource_version
            self._failures_count = 0

    def _list(self) -> None:
        self._list_wanted.clear()
        # Half a list counts for nothing: without a version the next turn begins with a list again.
        self._version = ""
        count, version = self._sink.take_list(self._pages())
        self._version = version
        self._list_due_at = time.monotonic() + self._relist_seconds * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
        logger().info("objects_listed", what=self._what, count=count, resource_version=version)

    def _pages(self) -> Iterator[Page[T]]:
        for page in self._feed.pages():
            self._active_at = time.monotonic()
            yield page

    def _pause(self, error: Exception) -> None:
        if self._interrupted():
            return  # the watch was interrupted by this process
        self._active_at, self.follows = time.monotonic(), False
        self._failures_count += 1
        longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(self._failures_count - 1, 10))
        pause_seconds = random.uniform(longest / 2, longest)  # noqa: S311 - jitter
        known = isinstance(error, EniTasksError)
        logger().warning(
            "watch_failed",
            what=self._what,
            error=str(error),
            again_in_seconds=round(pause_seconds, 1),
            exc_info=None if known else error,
        )
        self._stopping.wait(pause_seconds)
