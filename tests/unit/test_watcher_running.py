"""The ticking half of the watcher goes on whatever one tick ran into."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from eni_tasks.errors import StateUnavailable
from eni_tasks.watcher.running import run


class Watching:
    """Stands for the other loop: runs until it is stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def run(self) -> None:
        self.stopped.wait(10)

    def stop(self) -> None:
        self.stopped.set()


@pytest.mark.parametrize("error", [StateUnavailable("Redis is away"), ValueError("a bug")], ids=["expected", "bug"])
def test_ticks_go_on_until_stopped(error: Exception) -> None:
    watching: Any = Watching()
    stopping, ticks = threading.Event(), []

    def tick() -> None:
        ticks.append(len(ticks))
        if len(ticks) == 3:
            stopping.set()
        raise error

    run(watching, tick, stopping, tick_seconds=0)
    assert ticks == [0, 1, 2]
    assert watching.stopped.is_set()
