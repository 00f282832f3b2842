"""What Kubernetes Events tell of a node: what its plan says stands in the way, and the interfaces that it got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain.planner import plan
from eni_tasks.domain.status import desired
from eni_tasks.model.network import matches, ownership
from eni_tasks.model.node_event import NodeEvent
from eni_tasks.model.plan import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eni_tasks.model.node import Policy
    from eni_tasks.model.state import NodeState

INTERFACE_CREATED, REFUSED = "InterfaceCreated", "Ec2Refused"


def node_events(state: NodeState, policy: Policy) -> tuple[NodeEvent, ...]:
    """Say what is worth an Event, before the object is written.

    Args:
        state: the node, with the object as it was.
        policy: what the settings decide for all nodes.

    Returns:
        A warning with the planner's reason if the node can't get what it needs, or with EC2's refusal; and one event
        for each interface of ours that the object does not show yet.
    """
    if state.node.ignored or state.node.deleting:
        return ()
    return (*_in_the_way(state, policy), *_created(state, policy))


def _in_the_way(state: NodeState, policy: Policy) -> Iterator[NodeEvent]:
    decision = plan(state, policy, state.now)
    node = state.node
    if decision.blocked or decision.reason is Reason.AT_CAPACITY:
        word = "".join(part.capitalize() for part in decision.reason.split("-"))
        yield NodeEvent(node=node.name, uid=node.uid, reason=word, message=decision.explanation[-1], warning=True)
    elif state.memory.trouble:
        yield NodeEvent(node=node.name, uid=node.uid, reason=REFUSED, message=state.memory.trouble, warning=True)


def _created(state: NodeState, policy: Policy) -> Iterator[NodeEvent]:
    node = state.node
    entries = desired(state.obj, state, policy).enis or {}
    for interface in state.interfaces or ():
        new = interface.id in entries and interface.id not in node.shown_interfaces
        if new and matches(ownership(policy.cluster), interface.tags):
            message = (
                f"{interface.id} was created in {interface.subnet_id} and attached at device {interface.device_index}, "
                f"with {len(interface.addresses)} addresses."
            )
            yield NodeEvent(node=node.name, uid=node.uid, reason=INTERFACE_CREATED, message=message)
