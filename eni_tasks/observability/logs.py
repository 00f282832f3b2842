"""Structured logs: an event is a constant word plus fields; ids, never objects.

Context (node, task) is bound once by whoever knows it, with `structlog.contextvars`.
"""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor


def configure(*, json: bool, level: str) -> None:
    """Set up logging for this process, the libraries' standard logging included.

    Args:
        json: one JSON object per line, else coloured text for people.
        level: least severe level written.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Processor = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("botocore", "urllib3", "kombu", "amqp"):
        logging.getLogger(chatty).setLevel("WARNING")
    # "Task … received/succeeded" for each run says nothing that Flower does not show.
    logging.getLogger("celery.worker.strategy").setLevel("WARNING")
    logging.getLogger("celery.app.trace").setLevel("WARNING")


def logger() -> structlog.stdlib.BoundLogger:
    """The logger to bind fields to."""
    log: structlog.stdlib.BoundLogger = structlog.get_logger()
    return log
