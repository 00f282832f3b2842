"""What all tasks share: the services of the process, and how arguments are checked."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import celery
import structlog

from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.cilium_node import NODE_NAME
from eni_tasks.model.network import NodeName
from eni_tasks.observability.logs import logger
from eni_tasks.tasks.measuring import measured
from eni_tasks.tasks.messages import SENT_AT

if TYPE_CHECKING:
    from eni_tasks.bootstrap import Services
    from eni_tasks.tasks.app import EniApp

# Parts of a report that say that something was changed.
TOLD = ("did", "wrote")


class EniTask(celery.Task):  # type: ignore[misc]  # celery ships no types
    """A task with the services of its process."""

    # Somebody's wrong argument: `task_refused` tells it, and Celery adds no trace.
    throws = (InvalidInput, NodeGone)
    # Checked here, by the worker: a sender's own check is a 500 without words in Flower's API.
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
                # The header is asked for here: within the call the request has none.
                call, sent_at = super().__call__, self.request.get(SENT_AT)
                report = measured(self.services.counters, self.name, sent_at, lambda: call(*args, **kwargs))
            except self.throws as error:
                logger().warning("task_refused", error=str(error))
                raise
            # A run that found nothing to do says nothing: most runs of a healthy fleet.
            if done := {name: report[name] for name in TOLD if report.get(name)}:
                logger().info("task_done", node=report.get("node"), **done)
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
        """The use cases of this process."""
        app: EniApp = self.app
        return app.services


def node_name(node: object) -> NodeName:
    """Check what somebody gave as a node's name.

    Raises:
        InvalidInput: it can't be one; nothing is done.
    """
    if not isinstance(node, str) or not NODE_NAME.fullmatch(node):
        raise InvalidInput(f"node={node!r} is not the name of a node (such as ip-10-0-1-2.ec2.internal)")
    return NodeName(node)
