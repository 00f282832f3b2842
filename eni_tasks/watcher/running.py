"""Runs the watcher's loops, watching and ticking, until it is stopped, and reports them to the probes.

`eni_tasks.services.tick` decides what a tick does; the entry point handles signals.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from eni_tasks.errors import TransientError
from eni_tasks.observability.logs import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eni_tasks.model.cilium_node import CiliumNode
    from eni_tasks.observability.probes import Probes
    from eni_tasks.watcher.watching import Watching


def run(  # noqa: PLR0913 - what a watcher consists of
    watching: Watching[CiliumNode],
    tick: Callable[[], None],
    stopping: threading.Event,
    probes: Probes,
    *,
    beside: Sequence[Watching[Any]] = (),
    tick_seconds: float = 1.0,
) -> None:
    """Watches in threads and ticks in this one.

    The process is alive while no loop is stuck, even if every call is refused. It is ready while it follows the changes
    of nodes and ticks succeed. How the fleet fares does not matter: a node that can't be served must not hold up the
    roll-out of a fix.

    Args:
        watching: the loop over the API server's changes.
        tick: what is done once a second.
        stopping: ends both loops when it is set.
        probes: updated after every tick.
        beside: loops over the changes of other objects; the process is ready without them.
        tick_seconds: the pause between two ticks.
    """
    loops = (watching, *beside)
    threads = [threading.Thread(target=loop.run, name="watching") for loop in loops]
    for thread in threads:
        thread.start()
    try:
        while not stopping.wait(tick_seconds):
            worked = _tick(tick)
            if not any(loop.stuck for loop in loops):
                probes.alive()
            probes.ready(yes=worked and watching.follows)
    finally:
        probes.ready(yes=False)
        for loop in loops:
            loop.stop()
        for thread in threads:
            thread.join()


def _tick(tick: Callable[[], None]) -> bool:
    """Tick; returns whether it succeeded."""
    try:
        tick()
    except TransientError as error:
        logger().warning("tick_failed", error=str(error))
    except Exception:  # noqa: BLE001 - logged with its trace
        # The tick requeues overdue work, which guarantees delivery: one error must not end it.
        logger().exception("tick_failed")
    else:
        return True
    return False
