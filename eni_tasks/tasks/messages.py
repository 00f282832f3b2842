"""What Celery's broker is used for: messages that wake workers, and the question which workers answer.

Implements `ports.messages.Messages` and `ports.doctor.Workers`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import kombu.exceptions

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Pass, WorkKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery

SENT_AT = "eni_sent_at"  # header: the sender's clock, for measuring; nothing is decided by it
ANSWER_SECONDS = 2.0

MAINTAIN, PUBLISH = "eni.maintain_node", "eni.publish_node"
REFRESH_INVENTORY, REFRESH_INSTANCES = "eni.refresh_inventory", "eni.refresh_instances"
COLLECT_ORPHANS = "eni.collect_orphans"

PASSES = {
    Pass.INVENTORY: (REFRESH_INVENTORY, "resync"),
    Pass.INSTANCES: (REFRESH_INSTANCES, "resync"),
    Pass.ORPHANS: (COLLECT_ORPHANS, "ec2"),
}


class CeleryMessages:
    """Sends messages by task name and queue, without looking the task up."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, kind: WorkKind, name: NodeName | Pass) -> None:
        """See `ports.messages.Messages.send`."""
        task, args, queue = _message(kind, name)
        try:
            self._app.send_task(task, args=args, queue=queue, headers={SENT_AT: time.time()})
        except kombu.exceptions.OperationalError as error:
            raise StateUnavailable(f"the broker did not take {task}: {error}") from error


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
        """See `ports.doctor.Workers.queues`."""
        try:
            with self._app.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, interval_start=0)  # a person waits: once more at most
                inspect = self._app.control.inspect(timeout=self._answer_seconds, connection=connection)
                answers = inspect.active_queues()
        except kombu.exceptions.OperationalError as error:
            raise StateUnavailable(f"the broker did not pass our question to the workers: {error}") from error
        return {worker: tuple(queue["name"] for queue in queues) for worker, queues in (answers or {}).items()}


def _message(kind: WorkKind, name: NodeName | Pass) -> tuple[str, list[str], str]:
    """The task, its arguments and its queue."""
    if isinstance(name, Pass):
        task, queue = PASSES[name]
        return task, [], queue
    return (MAINTAIN, [name], "ec2") if kind is WorkKind.MAINTAIN else (PUBLISH, [name], "apiserver")
