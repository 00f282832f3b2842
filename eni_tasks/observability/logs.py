"""Structured logs: an event is a constant word plus fields; ids, never objects.

Everything that a process writes while it runs goes to standard error in this form, libraries' logs and an error that
ends a thread included. Context (node, task) is bound once, where it is known, with `structlog.contextvars`. What Celery
would print by itself is switched off in `tasks/worker.py`. `events` has all events.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from types import TracebackType

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# At info and below these repeat what our own events, or Flower, show.
CHATTY = ("amqp", "botocore", "kombu", "kubernetes", "urllib3", "celery.worker.strategy", "celery.app.trace")
_FIRST = ("timestamp", "level", "event")
# The password of a URL, in any text.
_URL_PASSWORD = re.compile(r"(?<=://)([^\s/:@\"']*):[^\s/\"']*@")


def configure(*, json: bool, level: str) -> None:
    """Set up logging for this process, the libraries' standard logging included.

    Args:
        json: one JSON object per line, else text for people, coloured on a terminal.
        level: least severe level written.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    # Plain: with rich installed the default prints each frame's variables, passwords among them.
    plain = structlog.dev.plain_traceback
    rendering: list[Processor] = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    if json:
        rendering = [structlog.processors.format_exc_info, _legible, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Formatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in CHATTY:
        logging.getLogger(name).setLevel("WARNING")
    logging.captureWarnings(capture=True)
    sys.excepthook = _unhandled
    threading.excepthook = lambda end: _unhandled(end.exc_type, end.exc_value, end.exc_traceback)


def logger() -> structlog.stdlib.BoundLogger:
    """The logger to bind fields to."""
    log: structlog.stdlib.BoundLogger = structlog.get_logger()
    return log


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Masks passwords in all texts, traces included."""

    def format(self, record: logging.LogRecord) -> str:
        return _URL_PASSWORD.sub(r"\1:****@", super().format(record))


def _legible(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the fields that people read first at the beginning."""
    first: EventDict = {name: event.pop(name) for name in _FIRST if name in event}
    return {**first, **event}


def _unhandled(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if error is None or issubclass(kind, (KeyboardInterrupt, SystemExit)):
        sys.__excepthook__(kind, error or kind(), trace)
    else:
        logger().critical("unhandled_error", exc_info=(kind, error, trace))
