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
from eni_tasks.settings import Settings, load
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
    run(watching, services.ticker(watching.relist).tick, stopping)


def run_worker(queues: Sequence[str] = QUEUES, *, threads: int = THREADS) -> None:
    """Serve queues until SIGTERM or SIGINT; what runs is finished first.

    Args:
        queues: which of `ec2`, `apiserver`, `resync`.
        threads: tasks at once; the work is waiting, so threads do.
    """
    app = make_app(start())
    _build_early(app, queues)
    argv = ["worker", "--pool", "threads", "--concurrency", str(threads), "--queues", ",".join(queues)]
    argv += ["--task-events", "--without-gossip", "--without-mingle", "--loglevel", app.eni_settings.log_level]
    argv += ["--hostname", f"{'-'.join(queues)}-{os.getpid()}@{socket.gethostname()}"]
    app.worker_main(argv)


def _build_early(app: EniApp, queues: Sequence[str]) -> None:
    """Build what the queues need before the first task: a wrong KUBECONFIG ends the process at once."""
    uses = {"ec2": "maintain", "apiserver": "publish", "resync": "refresh"}

    def build(**_: object) -> None:
        for queue in queues:
            getattr(app.services, uses[queue])

    worker_init.connect(build, weak=False)


def run_flower(*, address: str = "127.0.0.1", port: int = 5555, auth: str = "", open_to_all: bool = False) -> None:
    """Serve Flower until it is ended.

    Args:
        address: where it listens.
        port: 0 takes a free one.
        auth: `user:password`; needed unless `open_to_all`.
        open_to_all: let everybody in who reaches the address (the sandbox, on loopback).
    """
    app = make_app(start())
    argv = ["flower", f"--address={address}", f"--port={port}", "--max-tasks=2000", "--purge-offline-workers=60"]
    if auth:
        argv.append(f"--basic-auth={auth}")
    elif open_to_all:
        os.environ["FLOWER_UNAUTHENTICATED_API"] = "true"
    app.start(argv)
