"""What a person is told of a node by a Kubernetes Event."""

from __future__ import annotations

from eni_tasks.model.network import NodeName, Value


class NodeEvent(Value, frozen=True):
    """One thing to tell of a node.

    `uid` is that of its CiliumNode. `reason` is a constant word in Kubernetes' spelling, `message` one sentence or
    more; `warning` says that something stands in the way.
    """

    node: NodeName
    uid: str
    reason: str
    message: str
    warning: bool = False
