"""What all tasks share: the services of the process, the check of arguments, and how runs are measured and logged."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import celery
import structlog

from eni_tasks.errors import InvalidInput, NodeGone, StateUnavailable
from eni_tasks.observability.counters import Counters
from eni_tasks.observability.logs import logger
from eni_tasks.tasks.messages import REFRESH_INVENTORY, SENT_AT

if TYPE_CHECKING:
    from eni_tasks.bootstrap import Services
    from eni_tasks.tasks.app import EniApp

Report = dict[str, Any]

# The fields of a report that name changes.
CHANGES = ("did", "wrote")


class EniTask(celery.Task):  # type: ignore[misc]  # celery ships no types
    """A task with the services of its process."""

    # Expected: one line in the log reports it, and Celery adds no trace.
    throws = (InvalidInput, NodeGone, StateUnavailable)
    # The worker checks arguments: Celery's own check by the sender is a 500 without a message in Flower's API.
    typing = False
    # A whole report fits into the event that Flower shows as the result.
    resultrepr_maxsize = 4096

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, measured.

        Raises:
            InvalidInput: an argument is missing, or one too many; nothing is done.
        """
        with structlog.contextvars.bound_contextvars(task=self.name, task_id=self.request.id):
            try:
                self._check_arguments(*args, **kwargs)
                # The header is read here: within the call the request has none.
                call, sent_at = super().__call__, self.request.get(SENT_AT)
                report = measured(self.services.counters, self.name, sent_at, lambda: call(*args, **kwargs))
            except StateUnavailable as error:
                logger().warning("state_unavailable", error=str(error))
                raise
            except self.throws as error:
                logger().warning("task_refused", error=str(error))
                raise
            # A run that changed nothing logs nothing: most runs of a healthy fleet.
            if changes := {name: report[name] for name in CHANGES if report.get(name)}:
                logger().info("task_done", node=report.get("node"), **changes)
        return report

    def _check_arguments(self, *args: Any, **kwargs: Any) -> None:
        signature = inspect.signature(self.run)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = ", ".join(signature.parameters) or "none"
            raise InvalidInput(f"{self.name}: {error} (its arguments: {takes})") from None

    @property
    def services(self) -> Services:
        """The services of this process."""
        app: EniApp = self.app
        return app.services


def measured(counters: Counters, task: str, sent_at: object, run: Callable[[], Report]) -> Report:
    """Run a task, and count how long its message waited and how long it took.

    Args:
        counters: where to.
        task: its name.
        sent_at: when the message was sent, in seconds since 1970 by the sender's clock. Anything but a number counts
            as unknown: messages that people send by other means have none.
        run: the task's body; its report has "skipped" or "failed" if it was not served.

    Returns:
        The report.
    """
    if isinstance(sent_at, int | float):
        counters.observe("task_wait_seconds", {"task": task}, max(0.0, time.time() - sent_at))
    started, outcome = time.monotonic(), "error"
    try:
        report = run()
        outcome = next((word for word in ("skipped", "failed") if word in report), "ok")
    finally:
        seconds = time.monotonic() - started
        counters.observe("task_run_seconds", {"task": task, "outcome": outcome}, seconds)
    if task == REFRESH_INVENTORY and outcome != "skipped":
        status = "success" if outcome == "ok" else "failed"
        counters.observe("ipam_background_sync_duration_seconds", {"status": status}, seconds)
        counters.count("ipam_resync_total", value=float(outcome == "ok"))
    return report
