"""The static address of a node: an Elastic IP with the tags that its object names, on the instance's first interface.

It goes to the primary address of device 0, whether pods may use that interface or not, and is independent of the pool.
A public address that is there already counts, whoever gave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import setbacks
from eni_tasks.domain.eligibility import first_interface
from eni_tasks.model.plan import AssociateAddress

if TYPE_CHECKING:
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState


def assigned(state: NodeState) -> str:
    """Give the public address of the instance's first interface; "" if there is none."""
    first = first_interface(state.interfaces or (), state.node.network_card)
    return first.public_address if first else ""


def step(state: NodeState, policy: Policy, now: float) -> tuple[AssociateAddress, str] | str:
    """Decide how a node gets its static address.

    Args:
        state: the node and its interfaces.
        policy: for the setting.
        now: Redis' time in seconds.

    Returns:
        The action and the sentence that explains it; or why there is none: "" if nothing is missing.
    """
    node = state.node
    if not node.static_ip_tags or assigned(state):
        return ""
    asks = f"{node.name} asks for a static address, an Elastic IP with the tags {tags(node)}"
    if not policy.static_addresses:
        return f"{asks}: set ENI_TASKS_STATIC_ADDRESSES, or remove static-ip-tags from its object."
    setback = state.memory.static_address
    if setbacks.holds(setback, now, about=tags(node)):
        return setback.why
    first = first_interface(state.interfaces or (), node.network_card)
    if first is None or not first.primary_address:
        return f"{asks}, and EC2 shows no device 0 of {node.instance_id} with a private IPv4 address that could get it."
    action = AssociateAddress(
        interface_id=first.id, primary_address=first.primary_address, tags=dict(node.static_ip_tags)
    )
    return action, f"{asks}: associate a free one with {first.primary_address} of {first.id} (device 0)."


def tags(node: Node) -> str:
    """Give the tags of the wanted Elastic IP, as people write them."""
    return ", ".join(f"{key}={value}" for key, value in sorted(node.static_ip_tags.items()))
