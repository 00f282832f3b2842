"""The IPv6 prefix of a node: one /80, for agents of Cilium 1.20 that ask for IPv6 addresses.

Independent of IPv4: an interface without a free IPv4 slot may take it, and without one that can take it the pool is
served all the same. The prefix is never given back. It takes one of the interface's IPv6 slots, and the interface's
subnet must have an IPv6 block. EC2 gives prefixes to nitro and bare-metal instances only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.domain import setbacks, subnets
from eni_tasks.domain.eligibility import eligible

if TYPE_CHECKING:
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState


def missing(state: NodeState) -> bool:
    """Say whether the agent asks for IPv6 addresses, and no interface for pods has, or brings, a prefix."""
    held = (
        msgspec.structs.replace(each, attachment_status="attached") if each.attachment_status == "attaching" else each
        for each in state.interfaces or ()
    )
    return wanted(state.node) and not any(each.ipv6_prefixes for each in eligible(held, state.node))


def wanted(node: Node) -> bool:
    """Say whether the agent asks for IPv6 addresses."""
    return node.demand is not None and node.demand.ipv6 > 0


def obstacle(state: NodeState, policy: Policy, limits: Limits, now: float) -> str:
    """Say in a sentence why the node can't get a prefix now, whatever the interface; "" if it may be tried.

    Args:
        state: the node, which lacks a prefix.
        policy: for the setting.
        limits: what the instance type can carry.
        now: Redis' time in seconds.
    """
    name = state.node.name
    if not policy.ipv6:
        return f"The agent of {name} asks for IPv6 addresses: set ENI_TASKS_IPV6, or switch IPv6 off in Cilium."
    if not limits.ipv6_per_interface or not limits.takes_prefixes:
        return (
            f"The agent of {name} asks for IPv6 addresses, and {limits.instance_type} takes no IPv6 prefix: use a "
            "nitro instance type."
        )
    return state.memory.ipv6.why if setbacks.holds(state.memory.ipv6, now) else ""


def choose(state: NodeState, policy: Policy, limits: Limits) -> Interface | None:
    """Choose the interface for the prefix: the first for pods with a free IPv6 slot in a subnet with IPv6.

    Args:
        state: the node and its interfaces.
        policy: for the filters that keep subnets from all nodes.
        limits: what the instance type can carry.
    """
    return next(
        (
            interface
            for interface in eligible(state.interfaces or (), state.node)
            if len(interface.ipv6_addresses) + len(interface.ipv6_prefixes) < limits.ipv6_per_interface
            and subnets.has_ipv6(interface.subnet_id, state, policy)
        ),
        None,
    )
