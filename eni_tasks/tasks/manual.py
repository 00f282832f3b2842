"""Tasks that only people start: each does one thing now, and its result is a report that Flower shows.

All run on the `resync` queue, which is nearly always empty: a pause must not wait behind the very
mutations that it is to stop.
"""

from __future__ import annotations

from typing import Any

from eni_tasks.tasks.base import EniTask, node_name

QUEUE = "resync"


def resync_node(self: EniTask, node: str) -> dict[str, Any]:
    """Read one node's instance from EC2 now."""
    return self.services.refresh.read_node(node_name(node))


def pause(self: EniTask, who: str, why: str) -> dict[str, Any]:
    """Stop all mutations of EC2."""
    return self.services.admin.pause(who, why)


def resume(self: EniTask) -> dict[str, Any]:
    """Let mutations go on."""
    return self.services.admin.resume()


def unlock_node(self: EniTask, node: str) -> dict[str, Any]:
    """End the claims of a dead or stuck worker on a node."""
    return self.services.admin.unlock(node_name(node))


MANUAL = {
    "eni.resync_node": resync_node,
    "eni.pause": pause,
    "eni.resume": resume,
    "eni.unlock_node": unlock_node,
}
