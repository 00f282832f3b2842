"""Starting one process of the system and running it until it is told to stop.

Standard output stays free for commands that answer; logs go to standard error.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Sequence

from celery.signals import worker_init

from eni_tasks.bootstrap import Services
from eni_tasks.observability import logs
from eni_tasks.observability.probes import Probes
from eni_tasks.settings import Settings, load
from eni_tasks.tasks import logs as logs_of_celery
from eni_tasks.tasks import probing
from eni_tasks.tasks.app import EniApp, make_app
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
    watching = NodeWatching(services.node_feed, services.intake, settings.relist_seconds)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    probes = Probes(settings.probe_dir)
    with services.metering():
        run(watching, probes.turn()(services.ticker(watching.relist).tick), stopping)
    probes.serving(now=False)


def run_worker(queues: Sequence[str] = QUEUES, *, threads: int = THREADS) -> None:
    """Serve queues until SIGTERM or SIGINT; what runs is finished first.

    Args:
        queues: which of `ec2`, `apiserver`, `resync`.
        threads: tasks at once; the work is waiting, so threads do.
    """
    app = make_app(start())
    logs_of_celery.take_over()
    _build_early(app, queues)
    probing.install(app, Probes(app.eni_settings.probe_dir))
    argv = [*logs_of_celery.QUIET, "worker", "--pool", "threads", "--concurrency", str(threads)]
    argv += ["--queues", ",".join(queues)]
    argv += ["--task-events", "--without-gossip", "--without-mingle", "--loglevel", app.eni_settings.log_level]
    argv += ["--hostname", f"{'-'.join(queues)}-{os.getpid()}@{socket.gethostname()}"]
    with app.services.metering():
        app.worker_main(argv)


def _build_early(app: EniApp, queues: Sequence[str]) -> None:
    """Build what the queues need before the first task: a wrong KUBECONFIG ends the process at once."""
    uses = {"ec2": "maintain", "apiserver": "publish", "resync": "refresh"}

    def build(**_: object) -> None:
        for queue in queues:
            getattr(app.services, uses[queue])

    worker_init.connect(build, weak=False)
