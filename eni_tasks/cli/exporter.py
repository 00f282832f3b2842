"""`eni-tasks exporter`: shared state for Prometheus."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from eni_tasks.cli.common import services
from eni_tasks.cli.output import exit_on_error
from eni_tasks.observability.logs import logger
from eni_tasks.tasks.registry import QUEUES


def exporter(
    address: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one, which the log tells.")] = 9464,
) -> None:
    """Serve metrics for Prometheus at /metrics, read from shared state alone. One is enough."""
    with exit_on_error():
        run_exporter(address=address, port=port)


def run_exporter(*, address: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        address: where it listens.
        port: 0 takes a free one.

    Raises:
        InvalidInput: the settings can't be used, or nothing can listen there.
    """
    # Not above: every other command would wait for Prometheus' client to load.
    from eni_tasks.exporter.collector import StateCollector  # noqa: PLC0415
    from eni_tasks.exporter.serving import make_server  # noqa: PLC0415

    parts = services()
    collector = StateCollector(parts.state, parts.status, QUEUES, node_series=parts.settings.node_metrics)
    with make_server(collector, address, port) as server:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        logger().info("exporter_listens", address=address, port=server.server_port)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            logger().info("exporter_ended")
