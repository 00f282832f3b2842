"""The tasks: thin, explicitly named, with JSON scalars for arguments. Names and arguments are a wire format.

A changed meaning gets a new name, since old and new workers run side by side during a rollout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import celery

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import NodeName
from eni_tasks.tasks.messages import MAINTAIN, PUBLISH, REFRESH_INSTANCES, REFRESH_INVENTORY

if TYPE_CHECKING:
    from eni_tasks.bootstrap import Services
    from eni_tasks.tasks.app import EniApp

QUEUES = ("ec2", "apiserver", "resync")

TASK_QUEUES = {
    MAINTAIN: {"queue": "ec2"},
    PUBLISH: {"queue": "apiserver"},
    REFRESH_INVENTORY: {"queue": "resync"},
    REFRESH_INSTANCES: {"queue": "resync"},
}

# RFC 1123 subdomain: what Kubernetes accepts as the name of a node.
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class EniTask(celery.Task):  # type: ignore[misc]  # celery ships no types
    """What all tasks share: the services of the process."""

    @property
    def services(self) -> Services:
        """The use cases of this process."""
        app: EniApp = self.app
        return app.services


def register(app: EniApp) -> None:
    """Give the app its tasks."""
    bodies = {
        MAINTAIN: maintain_node,
        PUBLISH: publish_node,
        REFRESH_INVENTORY: refresh_inventory,
        REFRESH_INSTANCES: refresh_instances,
    }
    for name, body in bodies.items():
        app.task(body, name=name, base=EniTask, bind=True, **TASK_QUEUES[name])


def maintain_node(self: EniTask, node: str) -> dict[str, Any]:
    """Bring one node's pool to size; returns what was done and why no more."""
    return self.services.maintain.run(node_name(node))


def publish_node(self: EniTask, node: str) -> dict[str, Any]:
    """Write one node's CiliumNode; returns which writes were made."""
    return self.services.publish.run(node_name(node))


def refresh_inventory(self: EniTask) -> dict[str, Any]:
    """Read everything of the known nodes from EC2."""
    return self.services.refresh.inventory()


def refresh_instances(self: EniTask) -> dict[str, Any]:
    """Read the instances that are new or in doubt."""
    return self.services.refresh.instances()


def node_name(node: object) -> NodeName:
    """Check what somebody gave as a node's name.

    Raises:
        InvalidInput: it can't be one; nothing is done.
    """
    if not isinstance(node, str) or not _NODE_NAME.fullmatch(node):
        raise InvalidInput(f"node={node!r} is not the name of a node (such as ip-10-0-1-2.ec2.internal)")
    return NodeName(node)
