"""Runs the watcher's two loops, watching and ticking, until it is stopped, and reports both to the probes.

`eni_tasks.services.tick` decides what a tick does; the entry point handles signals.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from eni_tasks.errors import TransientError
from eni_tasks.observability.logs import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.observability.probes import Probes
    from eni_tasks.watcher.watching import NodeWatching


def run(
    watching: NodeWatching,
    tick: Callable[[], bool],
    stopping: threading.Event,
    probes: Probes,
    tick_seconds: float = 1.0,
) -> None:
    """Watches in one thread and ticks in this one.

    The process is alive while neither loop is stuck, even if every call is refused. It is ready while it follows
    changes, ticks succeed, and the system keeps up.

    Args:
        watching: the loop over the API server's changes.
        tick: what is done once a second; returns whether the system keeps up.
        stopping: ends both loops when it is set.
        probes: updated after every tick.
        tick_seconds: the pause between two ticks.
    """
    thread = threading.Thread(target=watching.run, name="watching")
    thread.start()
    try:
        while not stopping.wait(tick_seconds):
            worked = _tick(tick)
            if not watching.stuck:
                probes.alive()
            probes.ready(yes=worked and watching.follows)
    finally:
        probes.ready(yes=False)
        watching.stop()
        thread.join()


def _tick(tick: Callable[[], bool]) -> bool:
    try:
        return tick()
    except TransientError as error:
        logger().warning("tick_failed", error=str(error))
    except Exception:  # noqa: BLE001 - logged with its trace
        # The tick requeues overdue work, which guarantees delivery: one error must not end it.
        logger().exception("tick_failed")
    return False
