"""All tasks: thin, explicitly named, with JSON scalars for arguments.

Names and arguments are a wire format. A changed meaning gets a new name, since old and new workers run side by side
during a rollout. The report that a task returns is what Flower shows as its result. A task's docstring is its line in
docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from eni_tasks.errors import InvalidInput
from eni_tasks.model.node import node_name
from eni_tasks.model.work import Pass
from eni_tasks.tasks.base import EniTask, Report
from eni_tasks.tasks.messages import COLLECT_ORPHANS, MAINTAIN, PUBLISH, REFRESH_INSTANCES, REFRESH_INVENTORY

if TYPE_CHECKING:
    from eni_tasks.tasks.app import EniApp

QUEUES = ("ec2", "apiserver", "resync")


def maintain_node(self: EniTask, node: str) -> Report:
    """Bring one node's pool to size."""
    return self.services.maintain.run(node_name(node))


def publish_node(self: EniTask, node: str) -> Report:
    """Write one node's CiliumNode, if it differs from what is known."""
    return self.services.publish.run(node_name(node))


def refresh_inventory(self: EniTask) -> Report:
    """Read everything about the known nodes from EC2."""
    return self.services.refresh.read_inventory()


def refresh_instances(self: EniTask) -> Report:
    """Read the instances for which a read was requested."""
    return self.services.refresh.read_requested()


def collect_orphans(self: EniTask, dry_run: bool = False) -> Report:  # noqa: FBT001, FBT002 - a wire format
    """Delete interfaces of this cluster that were left behind; with `dry_run` only report them."""
    if not isinstance(dry_run, bool):
        raise InvalidInput(f"dry_run={dry_run!r} is neither true nor false; nothing was done")
    return self.services.orphans.run(dry_run=dry_run)


def resync_node(self: EniTask, node: str) -> Report:
    """Read one node's instance from EC2 now."""
    return self.services.refresh.read_node(node_name(node))


def pause(self: EniTask, who: str, why: str) -> Report:
    """Stop all mutations of EC2."""
    return self.services.admin.pause(who, why)


def resume(self: EniTask) -> Report:
    """Let mutations go on."""
    return self.services.admin.resume()


def unlock_node(self: EniTask, node: str) -> Report:
    """End the claims of a dead or stuck worker on a node."""
    return self.services.admin.unlock(node_name(node))


def unlock_pass(self: EniTask, name: str) -> Report:
    """End the claim of a dead or stuck worker on a pass: inventory, instances or orphans."""
    if name not in list(Pass):
        raise InvalidInput(f"{name!r} is none of the passes: {', '.join(Pass)}; nothing was done")
    return self.services.admin.unlock_pass(Pass(name))


# Name → body and queue. What only people start is on `resync`, which is nearly always empty: a pause must not wait
# behind the mutations that it is to stop.
TASKS: dict[str, tuple[Callable[..., Report], str]] = {
    MAINTAIN: (maintain_node, "ec2"),
    PUBLISH: (publish_node, "apiserver"),
    REFRESH_INVENTORY: (refresh_inventory, "resync"),
    REFRESH_INSTANCES: (refresh_instances, "resync"),
    COLLECT_ORPHANS: (collect_orphans, "ec2"),
    "eni.resync_node": (resync_node, "resync"),
    "eni.pause": (pause, "resync"),
    "eni.resume": (resume, "resync"),
    "eni.unlock_node": (unlock_node, "resync"),
    # On `ec2`: the pass that hangs may hold up the workers of `resync`.
    "eni.unlock_pass": (unlock_pass, "ec2"),
}

TASK_QUEUES = {name: {"queue": queue} for name, (_, queue) in TASKS.items()}


def register(app: EniApp) -> None:
    """Give the app its tasks."""
    for name, (body, _) in TASKS.items():
        app.task(body, name=name, base=EniTask, bind=True)
