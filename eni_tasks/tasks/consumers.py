"""Which workers answer, and which queues they serve: `ports.doctor.Workers`, by Celery's remote control."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kombu.exceptions

from eni_tasks.errors import StateUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery

ANSWER_SECONDS = 2.0


class CeleryWorkers:
    """Asks all workers of an app.

    Args:
        app: whose broker is asked.
        answer_seconds: how long answers are waited for; all of that time passes.
    """

    def __init__(self, app: Celery, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._app = app
        self._answer_seconds = answer_seconds

    def queues(self) -> Mapping[str, tuple[str, ...]]:
        """See the port."""
        try:
            answers = self._app.control.inspect(timeout=self._answer_seconds).active_queues()
        except kombu.exceptions.OperationalError as error:
            raise StateUnavailable(f"the broker did not pass our question to the workers: {error}") from error
        return {worker: tuple(queue["name"] for queue in queues) for worker, queues in (answers or {}).items()}
