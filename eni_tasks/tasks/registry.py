"""The tasks: thin, explicitly named, with JSON scalars for arguments. Names and arguments are a wire format.

A changed meaning gets a new name, since old and new workers run side by side during a rollout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eni_tasks.errors import InvalidInput
from eni_tasks.tasks.base import EniTask, node_name
from eni_tasks.tasks.manual import MANUAL
from eni_tasks.tasks.manual import QUEUE as MANUAL_QUEUE
from eni_tasks.tasks.messages import COLLECT_ORPHANS, MAINTAIN, PUBLISH, REFRESH_INSTANCES, REFRESH_INVENTORY

if TYPE_CHECKING:
    from eni_tasks.tasks.app import EniApp

QUEUES = ("ec2", "apiserver", "resync")

TASK_QUEUES = {
    MAINTAIN: {"queue": "ec2"},
    PUBLISH: {"queue": "apiserver"},
    REFRESH_INVENTORY: {"queue": "resync"},
    REFRESH_INSTANCES: {"queue": "resync"},
    COLLECT_ORPHANS: {"queue": "ec2"},
    **{name: {"queue": MANUAL_QUEUE} for name in MANUAL},
}


def register(app: EniApp) -> None:
    """Give the app its tasks."""
    bodies = {
        MAINTAIN: maintain_node,
        PUBLISH: publish_node,
        REFRESH_INVENTORY: refresh_inventory,
        REFRESH_INSTANCES: refresh_instances,
        COLLECT_ORPHANS: collect_orphans,
        **MANUAL,
    }
    for name, body in bodies.items():
        app.task(body, name=name, base=EniTask, bind=True)


def maintain_node(self: EniTask, node: str) -> dict[str, Any]:
    """Bring one node's pool to size; returns what was done and why no more."""
    return self.services.maintain.run(node_name(node))


def publish_node(self: EniTask, node: str) -> dict[str, Any]:
    """Write one node's CiliumNode; returns which writes were made."""
    return self.services.publish.run(node_name(node))


def refresh_inventory(self: EniTask) -> dict[str, Any]:
    """Read everything of the known nodes from EC2."""
    return self.services.refresh.read_inventory()


def refresh_instances(self: EniTask) -> dict[str, Any]:
    """Read the instances for which a read was requested."""
    return self.services.refresh.read_requested()


def collect_orphans(self: EniTask, dry_run: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - a wire format
    """Delete interfaces of this cluster that were left behind; returns which, and why not the others."""
    if not isinstance(dry_run, bool):
        raise InvalidInput(f"dry_run={dry_run!r} is neither true nor false; nothing was done")
    return self.services.orphans.run(dry_run=dry_run)
