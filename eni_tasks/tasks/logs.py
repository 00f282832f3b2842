"""A Celery worker speaks in our form: no loggers, no banner and no shouts of its own.

What it logs goes through the root logger, as everything does; a banner and the words on a signal, which
it writes to standard output as plain text, would break whoever reads a line at a time as JSON.
"""

from __future__ import annotations

from celery.apps import worker
from celery.signals import setup_logging, worker_shutting_down

from eni_tasks.observability.logs import logger

# Global options of Celery's command line, before the command: no banner.
QUIET = ("--quiet",)


def take_over() -> None:
    """Do this before a worker starts, once `observability.logs` is configured."""
    # Somebody who listens to this signal does the work; Celery then adds nothing.
    setup_logging.connect(_already_done, weak=False)
    worker_shutting_down.connect(_stopping, weak=False)
    worker.safe_say = _unsaid


def _already_done(**_: object) -> None:
    """Loggers are set up already."""


def _stopping(sig: str, how: str, **_: object) -> None:
    logger().info("worker_stopping", signal=sig, how=how.lower())


def _unsaid(msg: str, f: object = None) -> None:
    """What is said on a signal is logged as `worker_stopping`."""
