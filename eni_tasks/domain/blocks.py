"""Blocks of addresses, as agents of Cilium 1.20 list and give them up: a prefix, or one address as a /32.

The sixteen addresses of a prefix are no blocks of their own, although the object shows each of them.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING

from eni_tasks.domain.eligibility import eligible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node
    from eni_tasks.model.state import NodeState

_NAMED_COUNT = 3


def releasable(interfaces: Iterable[Interface], node: Node) -> dict[str, Interface]:
    """Map each block that could be released to its interface: no primary address, and no IPv6.

    Args:
        interfaces: all interfaces of the node's instance.
        node: the node whose rules hold.

    Returns:
        Blocks of the eligible interfaces, such as "10.0.1.16/28" and "10.0.0.9/32".
    """
    found: dict[str, Interface] = {}
    for interface in eligible(interfaces, node):
        singles = (f"{address}/32" for address in interface.addresses if address != interface.primary_address)
        for block in (*interface.prefixes, *singles):
            found.setdefault(block, interface)
    return found


def explain(state: NodeState) -> str:
    """Say how the blocks that an agent lists differ from those that it is shown, where that costs pods addresses.

    Such an agent is to be restarted: it holds a block of another instance, or does not take one back that it once
    missed (cilium#47910). Shortly after a change of the instance it is merely not ready.

    Args:
        state: the node and its facts.

    Returns:
        A sentence; "" if nothing is to be said, or if the agent lists no blocks.
    """
    node, interfaces = state.node, state.interfaces
    if node.demand is None or interfaces is None:
        return ""
    held = {*releasable(interfaces, node), *(f"{interface.primary_address}/32" for interface in interfaces)}
    listed = {block for block in node.demand.listed if isinstance(ip_network(block), IPv4Network)}
    if strange := sorted(listed - held):
        more = f" and {len(strange) - _NAMED_COUNT} more" if len(strange) > _NAMED_COUNT else ""
        return (
            f"The agent of {node.name} lists blocks that {node.instance_id} does not hold: "
            f"{', '.join(strange[:_NAMED_COUNT])}{more}. If that lasts, restart the agent."
        )
    has = sum(ip_network(block).num_addresses for block in listed)
    shown = sum(ip_network(block).num_addresses for block in releasable(interfaces, node))
    if listed and has < node.demand.ipv4 <= shown:
        return (
            f"The agent of {node.name} asks for {node.demand.ipv4} addresses and lists only {has} of those that it is "
            "shown: if that lasts, restart the agent."
        )
    return ""
