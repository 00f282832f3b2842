"""The processes of the system: their commands, and running each until a signal ends it.

Standard output stays free for commands that answer; logs go to standard error.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from typing import Annotated

import typer

from eni_tasks.bootstrap import Services
from eni_tasks.cli.output import WRONG_USE, exit_on_error, fail
from eni_tasks.observability import logs
from eni_tasks.observability.logs import logger
from eni_tasks.observability.probes import Probes
from eni_tasks.settings import Settings, load
from eni_tasks.tasks import worker as celery_worker
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import QUEUES
from eni_tasks.watcher import running
from eni_tasks.watcher.watching import Watching

THREADS = 8
ENDING = {signal.SIGTERM, signal.SIGINT}


def watcher() -> None:
    """Run a watcher: it sees changes of CiliumNodes, and ticks. Any number may run."""
    with exit_on_error():
        run_watcher()


def worker(
    queue: Annotated[
        list[str],
        typer.Option(
            "--queue",
            "-q",
            metavar="QUEUE",
            help=f"One of {', '.join(QUEUES)}; may be repeated.",
            autocompletion=lambda: list(QUEUES),
        ),
    ],
    threads: Annotated[int, typer.Option(min=1, max=64, metavar="COUNT", help="Tasks at once.")] = THREADS,
) -> None:
    """Run a worker for one or more queues."""
    if unknown := sorted(set(queue) - set(QUEUES)):
        fail(f"No such queue: {', '.join(unknown)}; there are {', '.join(QUEUES)}.", WRONG_USE)
    with exit_on_error():
        run_worker(queue, threads=threads)


def exporter(
    address: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one, which the log shows.")] = 9464,
) -> None:
    """Serve metrics for Prometheus at /metrics and, on a port of its own, a status page. One is enough."""
    with exit_on_error():
        run_exporter(address=address, port=port)


def start() -> Settings:
    """Read the settings and set up logs, as every process does first.

    Raises:
        InvalidInput: the settings can't be used.
    """
    settings = load()
    logs.configure(json=settings.log_format == "json", level=settings.log_level)
    return settings


def services(*, interactive: bool = True) -> Services:
    """The services of this process.

    Args:
        interactive: a person or a monitor waits for each answer of Redis.

    Raises:
        InvalidInput: the settings can't be used.
    """
    settings = start()
    return Services(settings, CeleryMessages(make_app(settings)), interactive=interactive)


def run_watcher() -> None:
    """Watch and tick until SIGTERM or SIGINT.

    Raises:
        InvalidInput: the settings, or the configuration of the API server, can't be used.
    """
    built = services(interactive=False)
    settings = built.settings
    times = {"relist_seconds": settings.relist_seconds, "silence_seconds": settings.watch_timeout_seconds}
    nodes = Watching("nodes", built.node_feed, built.ingest, **times)
    pods = Watching("pods", built.pod_feed, built.pending_pods, **times) if settings.surge else None
    ticker, probes = built.ticker(nodes.relist), Probes(settings.probe_dir)

    def tick() -> None:
        ticker.tick()
        if pods is not None and pods.follows:
            built.pending_pods.write()

    _set_on_signals(built.stopping)
    with built.counter_flusher():
        running.run(nodes, tick, built.stopping, probes, beside=[pods] if pods else [])


def run_worker(queues: Sequence[str] = QUEUES, *, threads: int = THREADS) -> None:
    """Serve queues until SIGTERM or SIGINT; running tasks are finished first.

    Args:
        queues: which of `ec2`, `apiserver`, `resync`.
        threads: tasks at once; they spend their time waiting for answers, so threads do.

    Raises:
        InvalidInput: the settings can't be used.
    """
    celery_worker.run(make_app(start()), queues, threads)


def run_exporter(*, address: str, port: int) -> None:
    """Serve metrics and the status page until SIGTERM or SIGINT.

    Args:
        address: where the metrics are; the settings say where the page is.
        port: 0 takes a free one.

    Raises:
        InvalidInput: the settings can't be used, or nothing can listen there.
    """
    # Not above: every other command would wait for Prometheus' client to load.
    from eni_tasks.exporter.collector import StateCollector  # noqa: PLC0415
    from eni_tasks.exporter.page.serving import make_page_server  # noqa: PLC0415
    from eni_tasks.exporter.serving import make_server  # noqa: PLC0415

    built = services()
    collector = StateCollector(built.state, built.status, QUEUES, built.settings)
    with (
        make_server(collector, address, port) as server,
        make_page_server(built.state, built.status, QUEUES, built.settings) as page,
    ):
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        threading.Thread(target=page.serve_forever, name="status page", daemon=True).start()
        logger().info(
            "exporter_started",
            address=address,
            port=server.server_port,
            page_address=built.settings.page_address,
            page_port=page.server_port,
        )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            logger().info("exporter_stopped")


def _set_on_signals(stopping: threading.Event) -> None:
    # By a thread: a handler would run in the main thread, which may just then hold the event's lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)

    def wait() -> None:
        signal.sigwait(ENDING)
        stopping.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
