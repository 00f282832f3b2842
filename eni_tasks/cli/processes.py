"""Starting one process of the system and running it until it is told to stop.

Standard output stays free for commands that answer; logs go to standard error.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Sequence

from eni_tasks.bootstrap import Services
from eni_tasks.observability import logs
from eni_tasks.observability.probes import Probes
from eni_tasks.settings import Settings, load
from eni_tasks.tasks import lifecycle
from eni_tasks.tasks import logs as logs_of_celery
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import QUEUES
from eni_tasks.watcher.running import run
from eni_tasks.watcher.watching import NodeWatching

THREADS = 8


def start() -> Settings:
    """Read the settings and set up logs, as every process does first.

    Raises:
        InvalidInput: the settings can't be used.
    """
    settings = load()
    logs.configure(json=settings.log_format == "json", level=settings.log_level)
    return settings


def run_watcher() -> None:
    """Watch and tick until SIGTERM or SIGINT."""
    settings = start()
    services = Services(settings, CeleryMessages(make_app(settings)))
    watching = NodeWatching(
        services.node_feed, services.ingest, settings.relist_seconds, settings.watch_timeout_seconds
    )
    probes = Probes(settings.probe_dir)
    _set_on_signals(services.stopping)
    with services.counter_flusher():
        run(watching, services.ticker(watching.relist).tick, services.stopping, probes)


def _set_on_signals(stopping: threading.Event) -> None:
    # By a thread: a handler would run in the main thread, which may just then hold the event's lock.
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)

    def wait() -> None:
        signal.sigwait(ending)
        stopping.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def run_worker(queues: Sequence[str] = QUEUES, *, threads: int = THREADS) -> None:
    """Serve queues until SIGTERM or SIGINT; what runs is finished first.

    Args:
        queues: which of `ec2`, `apiserver`, `resync`.
        threads: tasks at once; the work is waiting, so threads do.
    """
    app = make_app(start())
    logs_of_celery.take_over()
    lifecycle.follow(app, queues)
    argv = [*logs_of_celery.QUIET, "worker", "--pool", "threads", "--concurrency", str(threads)]
    argv += ["--queues", ",".join(queues)]
    argv += ["--task-events", "--without-gossip", "--without-mingle", "--loglevel", app.eni_settings.log_level]
    argv += ["--hostname", f"{'-'.join(queues)}-{os.getpid()}@{socket.gethostname()}"]
    with app.services.counter_flusher():
        app.worker_main(argv)
