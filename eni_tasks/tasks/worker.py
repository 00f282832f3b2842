"""A worker process: how it starts, logs, reports to its probes, and ends, by Celery's steps and signals.

What Celery logs goes through the root logger, in our form. A banner, and the messages that it prints on a signal, are
switched off: they are plain text, which a reader of JSON lines can't parse.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from celery import bootsteps
from celery.apps import worker
from celery.signals import setup_logging, worker_shutdown, worker_shutting_down
from celery.worker import heartbeat, pidbox
from celery.worker.consumer import Consumer

from eni_tasks.errors import InvalidInput
from eni_tasks.observability.logs import logger
from eni_tasks.observability.probes import Probes
from eni_tasks.tasks.app import EniApp
from eni_tasks.tasks.envelope import check_command, check_task, log_rejected
from eni_tasks.tasks.transport import REMOTE_CONTROL, consumer_active

# The services that the tasks of a queue use.
USES = {"ec2": "maintain", "apiserver": "publish", "resync": "refresh"}


class Heart(heartbeat.Heart):  # type: ignore[misc]  # celery ships no types
    """Sends a heartbeat once; the next one is due soon enough.

    Celery's own retries without end while Redis does not answer. It does so on the thread that consumes, which then
    notices neither that its connection is lost nor that the worker is asked to end.
    """

    def _send(self, event: str, retry: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - celery's signature
        return super()._send(event, retry=False)


class CommandConsumer(pidbox.Pidbox):  # type: ignore[misc]  # celery ships no types
    """Hands a message of remote control to Celery only if it is a command.

    At any other, Celery ends its subscription and begins another one. Commands that are sent in between are lost:
    Redis keeps none for those who do not listen.
    """

    def start(self, c: Consumer) -> None:
        """Subscribe."""
        super().start(c)
        self.consumer.on_decode_error = self._reject

    def on_message(self, body: object, message: Any) -> None:
        """Carry out a command."""
        try:
            check_command(message.headers, body)
        except InvalidInput as error:
            self._reject(message, error)
        else:
            super().on_message(body, message)

    @staticmethod
    def _reject(message: Any, problem: Exception) -> None:
        log_rejected(REMOTE_CONTROL, problem, message.body)  # it needs no acknowledgement


class TaskConsumer(Consumer):  # type: ignore[misc]  # celery ships no types
    """Hands a message to Celery only if a task can be made of it."""

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        """Make the function that is called with each message of a task queue."""
        handle = super().create_task_handler(*args, **kwargs)

        def check_and_handle(message: Any) -> None:
            try:
                check_task(message.headers, message.body, self.app.tasks)
            except InvalidInput as error:
                self._reject(message, error)
            else:
                handle(message)

        return check_and_handle

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Reject a message whose arguments Celery can't decode, such as a date that is none."""
        self._reject(message, exc)

    def on_invalid_task(self, body: object, message: Any, exc: Exception) -> None:  # noqa: ARG002 - celery's signature
        """Reject a message with a header that Celery can't decode, such as a time that is none."""
        self._reject(message, exc)

    @staticmethod
    def _reject(message: Any, problem: Exception) -> None:
        log_rejected(message.delivery_info["routing_key"], problem, message.headers)
        message.reject()


def run(app: EniApp, queues: Sequence[str], threads: int) -> None:
    """Serve queues until SIGTERM or SIGINT; running tasks are finished first.

    Args:
        app: what it runs.
        queues: which it serves.
        threads: tasks at once.

    Raises:
        InvalidInput: the configuration of the API server, or the folder for probes, can't be used.
        SystemExit: an error ended it; the code is not 0.
    """
    _take_over_logging()
    for queue in queues:
        getattr(app.services, USES[queue])  # before anything starts: a wrong KUBECONFIG ends the process
    _connect(app, Probes(app.eni_settings.probe_dir))
    ended: list[Any] = []
    worker_shutdown.connect(lambda sender, **_: ended.append(sender), weak=False)
    argv = ["--quiet", "worker", "--pool", "threads", "--concurrency", str(threads), "--queues", ",".join(queues)]
    argv += ["--task-events", "--without-gossip", "--without-mingle", "--loglevel", app.eni_settings.log_level]
    argv += ["--hostname", f"{'-'.join(queues)}-{os.getpid()}@{app.eni_settings.pod_name or socket.gethostname()}"]
    with app.services.counter_flusher():
        app.worker_main(argv)
    # Celery's own exit code gets lost on the way. After a `shutdown` by remote control it is a sentence.
    if not app.services.stopping.is_set() and not any(isinstance(worker.exitcode, str) for worker in ended):
        raise SystemExit(1)


def _connect(app: EniApp, probes: Probes) -> None:
    """Connect the worker's steps and signals with the services and the probes."""
    services = app.services

    class Serving(bootsteps.StartStopStep):  # type: ignore[misc]  # celery ships no types
        """Started with every connection to the broker, and stopped when that is lost."""

        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, _consumer: object) -> None:
            probes.ready(yes=True)

        def stop(self, _consumer: object) -> None:
            probes.ready(yes=False)

    def on_active(**_: object) -> None:
        probes.alive()

    def on_stop(**_: object) -> None:
        # This runs within a signal handler. The main thread never waits for this event, so it can't hold its lock.
        services.stopping.set()
        probes.ready(yes=False)

    heartbeat.Heart = Heart
    pidbox.Pidbox = CommandConsumer
    app.conf.worker_consumer = TaskConsumer
    app.steps["consumer"].add(Serving)
    consumer_active.connect(on_active, weak=False)
    worker_shutting_down.connect(on_stop, weak=False)


def _take_over_logging() -> None:
    # Celery sets up no loggers if a receiver of this signal does.
    setup_logging.connect(_loggers_are_set_up, weak=False)
    worker_shutting_down.connect(_log_signal, weak=False)
    worker.safe_say = _print_nothing


def _loggers_are_set_up(**_: object) -> None:
    """`observability.logs.configure` was called at the start of the process."""


def _log_signal(sig: str, how: str, **_: object) -> None:
    logger().info("worker_stopping", signal=sig, how=how.lower())


def _print_nothing(msg: str, f: object = None) -> None:
    """Celery's message on a signal is logged as `worker_stopping` instead."""
