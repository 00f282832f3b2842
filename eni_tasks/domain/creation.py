"""What a new interface is made of: subnet, size, device index, security groups, tags.

It decides only what to ask for; creating, attaching and recording it step by step is the maintain
service's business. `subnets` finds the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import capacity, subnets
from eni_tasks.domain.blocked import Blocked
from eni_tasks.domain.eligibility import first_interface, occupying
from eni_tasks.domain.tags import matches
from eni_tasks.model.plan import CreateInterface, Reason

if TYPE_CHECKING:
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState


def create(
    state: NodeState, policy: Policy, limits: Limits, want_secondaries: int
) -> tuple[CreateInterface, str] | Blocked:
    """Decide the interface to create.

    Args:
        state: the node, its interfaces, the subnets.
        policy: for tags and subnet filters.
        limits: what the instance type can carry.
        want_secondaries: addresses to ask for besides the primary.

    Returns:
        The action and the sentence that explains it, or why there is none.
    """
    node = state.node
    interfaces = state.interfaces or ()
    groups = security_groups(state)
    if isinstance(groups, Blocked):
        return groups
    choice = subnets.choose(state, policy, limits)
    if isinstance(choice, Blocked):
        return choice
    # The subnet gives one address to the interface itself.
    count = min(want_secondaries, capacity.secondaries_per_interface(limits), choice.room - 1)
    index = next_device_index(interfaces, node)
    action = CreateInterface(
        instance_id=node.instance_id,
        subnet_id=choice.subnet.id,
        secondary_count=count,
        security_groups=groups,
        device_index=index,
        network_card=limits.network_card,
        description=f"Cilium-CNI ({node.instance_id})",
        tags=dict(policy.interface_tags),
        delete_on_termination=node.delete_on_termination,
    )
    sentence = (
        f"No attached interface can take more: create one with {count} of {want_secondaries} as device {index} in "
        f"{choice.subnet.id} (rule {choice.rule}, room for {choice.room})."
    )
    return action, sentence


def next_device_index(interfaces: tuple[Interface, ...], node: Node) -> int:
    """Find the first free device index at or above the node's first-interface-index."""
    taken = {interface.device_index for interface in occupying(interfaces, node.network_card)}
    index = node.first_interface_index
    while index in taken:
        index += 1
    return index


def security_groups(state: NodeState) -> tuple[str, ...] | Blocked:
    """Find the security groups of a new interface.

    Args:
        state: the node, its interfaces, the groups of its VPC.

    Returns:
        Those that the object names, in its order; else all of the VPC that carry its tags, sorted;
        else those of the instance's first interface, sorted. Blocked if that leaves none, since EC2
        would silently take the VPC's default group.
    """
    node = state.node
    if node.security_groups:
        return node.security_groups
    if node.security_group_tags:
        groups = state.infrastructure.security_groups.values()
        tagged = (g.id for g in groups if g.vpc_id == node.vpc_id and matches(node.security_group_tags, g.tags))
        if found := tuple(sorted(tagged)):
            return found
    first = first_interface(state.interfaces or (), node.network_card)
    if first is not None and first.security_groups:
        return tuple(sorted(first.security_groups))
    return Blocked(
        Reason.NO_SECURITY_GROUP,
        f"No security groups for an interface of {node.name}: none in spec.eni.security-groups, none by "
        f"security-group-tags, and device 0 of {node.instance_id} shows none. Name them in the object.",
    )
