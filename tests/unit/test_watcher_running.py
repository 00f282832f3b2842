"""The ticking half of the watcher goes on whatever one tick ran into, and says how both halves fare."""

from __future__ import annotations

import threading
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from eni_tasks.errors import StateUnavailable
from eni_tasks.observability.probes import Probes
from eni_tasks.watcher.running import run

if TYPE_CHECKING:
    from collections.abc import Callable


class Watching:
    """Stands for the other loop: runs until it is stopped."""

    def __init__(self, *, stuck: bool = False, follows: bool = True) -> None:
        self.stopped = threading.Event()
        self.stuck, self.follows = stuck, follows

    def run(self) -> None:
        self.stopped.wait(10)

    def stop(self) -> None:
        self.stopped.set()


def ticks(watching: Any, probes: Probes, tick: Callable[[], None], count: int = 3) -> int:
    """Ticks that many times; returns how often it was tried."""
    stopping, tried = threading.Event(), []

    def counted() -> None:
        tried.append(1)
        if len(tried) == count:
            stopping.set()
        tick()

    run(watching, counted, stopping, probes, tick_seconds=0)
    return len(tried)


@pytest.mark.parametrize("error", [StateUnavailable("Redis is away"), ValueError("a bug")], ids=["expected", "bug"])
def test_ticks_go_on_until_stopped(error: Exception) -> None:
    watching = Watching()

    def tick() -> None:
        raise error

    assert ticks(watching, Probes(""), tick) == 3
    assert watching.stopped.is_set()


class RecordedProbes(Probes):
    """Keeps every report."""

    def __init__(self) -> None:
        super().__init__("")
        self.said: list[str] = []

    def alive(self) -> None:
        self.said.append("alive")

    def ready(self, *, yes: bool) -> None:
        self.said.append("ready" if yes else "not ready")


@pytest.mark.parametrize(
    ("loop", "error", "said"),
    [
        ({}, None, ["alive", "ready"]),
        ({"follows": False}, None, ["alive", "not ready"]),
        ({}, StateUnavailable("Redis is away"), ["alive", "not ready"]),
        ({"stuck": True}, None, ["ready"]),
        ({"stuck": True, "follows": False}, None, ["not ready"]),
    ],
    ids=["well", "no-api-server", "no-redis", "stuck", "stuck-before-the-first-list"],
)
def test_probes_are_told_after_each_tick(loop: dict[str, bool], error: Exception | None, said: list[str]) -> None:
    def tick() -> None:
        if error:
            raise error

    probes = RecordedProbes()
    ticks(Watching(**loop), probes, tick, count=2)
    assert probes.said == [*said, *said, "not ready"]


def test_another_loop_makes_the_process_neither_ready_nor_unready_but_may_be_stuck() -> None:
    for stuck, said in ((False, ["alive", "ready"]), (True, ["ready"])):
        nodes, pods, probes, stopping = Watching(), Watching(follows=False, stuck=stuck), RecordedProbes(), Event()
        run(nodes, stopping.set, stopping, probes, beside=[pods], tick_seconds=0)  # type: ignore[arg-type, list-item]
        assert probes.said[: len(said)] == said
        assert pods.stopped.is_set()
