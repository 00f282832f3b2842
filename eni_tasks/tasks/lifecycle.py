"""How a worker begins, what it tells the probes, and how it ends: what hangs on Celery's steps and signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from celery import bootsteps
from celery.signals import worker_init, worker_shutting_down
from celery.worker import heartbeat

from eni_tasks.observability.probes import Probes
from eni_tasks.tasks.transport import consumer_moved

if TYPE_CHECKING:
    from eni_tasks.tasks.app import EniApp

USES = {"ec2": "maintain", "apiserver": "publish", "resync": "refresh"}


class Heart(heartbeat.Heart):  # type: ignore[misc]  # celery ships no types
    """Says once that the worker lives, and again at the next beat.

    Celery's own tries for ever when Redis does not answer. It does so on the thread that consumes, which then
    neither notices that its connection is gone, nor that the worker is told to end.
    """

    def _send(self, event: str, retry: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - celery's signature
        return super()._send(event, retry=False)


def follow(app: EniApp, queues: Sequence[str]) -> None:
    """Do this before a worker starts.

    Args:
        app: what it runs.
        queues: which it serves.

    Raises:
        InvalidInput: the folder for probes can't be used.
    """
    probes = Probes(app.eni_settings.probe_dir)
    services = app.services

    class Serving(bootsteps.StartStopStep):  # type: ignore[misc]  # celery ships no types
        """Started with every connection to the broker, and stopped when that is lost."""

        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, _consumer: object) -> None:
            probes.ready(yes=True)

        def stop(self, _consumer: object) -> None:
            probes.ready(yes=False)

    def begins(**_: object) -> None:
        # Built before the first task: a wrong KUBECONFIG ends the process at once.
        for queue in queues:
            getattr(services, USES[queue])

    def moves(**_: object) -> None:
        probes.alive()

    def ends(**_: object) -> None:
        # This runs within a signal handler. The main thread never waits for this event, so it can't hold its lock.
        services.stopping.set()
        probes.ready(yes=False)

    heartbeat.Heart = Heart
    app.steps["consumer"].add(Serving)
    worker_init.connect(begins, weak=False)
    consumer_moved.connect(moves, weak=False)
    worker_shutting_down.connect(ends, weak=False)
