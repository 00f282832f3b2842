"""When the loop that watches counts as stuck, and when it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from eni_tasks.errors import ClusterUnavailable
from eni_tasks.ports.kube import Changes, HistoryGone, Page
from eni_tasks.watcher import watching
from eni_tasks.watcher.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Iterator

SILENCE_SECONDS = 90.0


class Sink:
    """Takes everything."""

    def take_list(self, pages: Iterator[Page]) -> tuple[int, str]:
        return len(list(pages)), "1"

    def changed(self, objects: Any) -> None: ...
    def removed(self, name: str, uid: str) -> None: ...


class Feed:
    """One list, then a watch that does what the test says; ends the loop after that."""

    def __init__(self, *watch: Changes | Exception) -> None:
        self.watch = watch
        self.loop: Watching | None = None
        self.followed: list[bool] = []

    def pages(self) -> Iterator[Page]:
        yield Page(objects=(), resource_version="1")

    def version(self) -> str:
        return "1"

    def changes(self, *_: object) -> Iterator[Changes]:
        assert self.loop
        for event in self.watch:
            if isinstance(event, Exception):
                # What comes after the refusal is the end: no pause in this test.
                self.loop._stopping.wait = lambda *_: self.loop.stop() if self.loop else None  # type: ignore[assignment]
                raise event
            yield event
            self.followed.append(self.loop.follows)
        self.loop.stop()

    def interrupt(self) -> None: ...


def loop(*watch: Changes | Exception) -> tuple[Watching, Feed]:
    feed = Feed(*watch)
    made = Watching("nodes", feed, Sink(), relist_seconds=300, silence_seconds=SILENCE_SECONDS)  # type: ignore[arg-type]
    feed.loop = made
    return made, feed


def test_it_follows_from_the_first_answer_of_a_watch_until_a_refusal() -> None:
    made, feed = loop(Changes(resource_version="1"), Changes(resource_version="2"))
    assert not made.follows
    made.run()
    assert feed.followed == [True, True]


@pytest.mark.parametrize("error", [ClusterUnavailable("away"), HistoryGone("410"), ValueError("a bug")], ids=str)
def test_a_refusal_is_no_standstill_but_it_follows_no_more(error: Exception) -> None:
    made, _ = loop(Changes(resource_version="1"), error)
    made.run()
    assert not made.follows
    assert not made.stuck


def test_it_is_stuck_once_it_is_silent_for_longer_than_a_watch_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    made, _ = loop()
    now[0] += SILENCE_SECONDS + 50  # a dead watch, and the longest pause after it
    assert not made.stuck
    now[0] += 20
    assert made.stuck
