"""When a worker is alive and when it serves, seen from the consumer's event loop.

A hung loop touches nothing and goes stale. A lost Redis is no reason to start the worker again: it is away
until the connection is back, and doesn't serve meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery import bootsteps

if TYPE_CHECKING:
    from eni_tasks.observability.probes import Probes
    from eni_tasks.tasks.app import EniApp

_TOUCH_SECONDS = 5.0
_AWAY_SECONDS = 3600.0


def install(app: EniApp, probes: Probes) -> None:
    """Let the worker that this process runs keep its files.

    Args:
        app: of the worker.
        probes: the files.
    """
    # Until Redis answers for the first time.
    probes.alive(_AWAY_SECONDS)

    class Probing(bootsteps.StartStopStep):  # type: ignore[misc]  # celery ships no types
        """Started with each connection to the broker, stopped with it."""

        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, consumer: Any) -> None:
            probes.alive()
            probes.serving(now=True)
            self._touching = consumer.timer.call_repeatedly(_TOUCH_SECONDS, probes.alive)

        def stop(self, _consumer: Any) -> None:
            self._touching.cancel()
            probes.serving(now=False)
            probes.alive(_AWAY_SECONDS)

    app.steps["consumer"].add(Probing)
