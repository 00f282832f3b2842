"""Sending hints through Celery: `ports.messages.Messages`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import kombu.exceptions

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Pass, WorkKind

if TYPE_CHECKING:
    from celery import Celery

SENT_AT = "eni_sent_at"  # header: the sender's clock, for people; nothing decides by it

MAINTAIN, PUBLISH = "eni.maintain_node", "eni.publish_node"
REFRESH_INVENTORY, REFRESH_INSTANCES = "eni.refresh_inventory", "eni.refresh_instances"
COLLECT_ORPHANS = "eni.collect_orphans"


class CeleryMessages:
    """Sends hints by task name and queue, without looking the task up."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, kind: WorkKind, name: NodeName | Pass) -> None:
        """See `ports.messages.Messages.send`."""
        task, args, queue = _message(kind, name)
        try:
            self._app.send_task(task, args=args, queue=queue, headers={SENT_AT: time.time()})
        except kombu.exceptions.OperationalError as error:
            raise StateUnavailable(f"the broker did not take {task}: {error}") from error


PASSES = {
    Pass.INVENTORY: (REFRESH_INVENTORY, "resync"),
    Pass.INSTANCES: (REFRESH_INSTANCES, "resync"),
    Pass.ORPHANS: (COLLECT_ORPHANS, "ec2"),
}


def _message(kind: WorkKind, name: NodeName | Pass) -> tuple[str, list[str], str]:
    """The task, its arguments and its queue."""
    if isinstance(name, Pass):
        task, queue = PASSES[name]
        return task, [], queue
    return (MAINTAIN, [name], "ec2") if kind is WorkKind.MAINTAIN else (PUBLISH, [name], "apiserver")
