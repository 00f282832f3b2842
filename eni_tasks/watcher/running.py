"""Runs the watcher's two loops, watching and ticking, until it is told to stop.

What a tick does is decided in `eni_tasks.services.ticking`; signals are the entry point's business.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from eni_tasks.errors import TransientError
from eni_tasks.observability.logs import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.watcher.watching import NodeWatching


def run(watching: NodeWatching, tick: Callable[[], None], stopping: threading.Event, tick_seconds: float = 1.0) -> None:
    """Watches in one thread and ticks in this one.

    Args:
        watching: the loop over the API server's changes.
        tick: what is to be done once a second.
        stopping: ends both loops when it is set.
        tick_seconds: the pause between two ticks.
    """
    thread = threading.Thread(target=watching.run, name="watching")
    thread.start()
    try:
        while not stopping.wait(tick_seconds):
            _tick(tick)
    finally:
        watching.stop()
        thread.join()


def _tick(tick: Callable[[], None]) -> None:
    try:
        tick()
    except TransientError as error:
        logger().warning("tick_failed", error=str(error))
    except Exception:  # noqa: BLE001 - logged with its trace
        # The sweep is the guarantee of delivery: it goes on whatever one tick ran into.
        logger().exception("tick_failed")
