"""Which addresses of an interface pods may get: its secondaries, and those of delegated prefixes.

The primary stays out unless the node says `use-primary-address`; above all the instance's own
address must never reach a pod by accident. Both the pool and the status are built from here, so
that they cannot disagree.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from eni_tasks.domain.eligibility import eligible, on_other_cards
from eni_tasks.domain.pool_demand import covered
from eni_tasks.domain.prefixes import SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node


@lru_cache(maxsize=4096)
def expanded(name: str) -> tuple[str, ...]:
    """List the addresses of a prefix; an address is its own only one."""
    return tuple(map(str, IPv4Network(name))) if "/" in name else (name,)


def secondary_count(interface: Interface) -> int:
    """Count the addresses that pods can get from an interface, its primary aside."""
    return len(interface.addresses) + SIZE * len(interface.prefixes)


def pod_addresses(interface: Interface, node: Node) -> tuple[str, ...]:
    """List an interface's addresses in EC2's order, prefixes expanded after them.

    Args:
        interface: the interface.
        node: the node, for use-primary-address.

    Returns:
        Primary (only if asked for), secondaries, then all sixteen addresses of each /28.
    """
    primary = (interface.primary_address,) if node.use_primary_address else ()
    of_prefixes = tuple(address for prefix in interface.prefixes for address in expanded(prefix))
    return primary + interface.addresses + of_prefixes


def may_use(node: Node, addresses: Iterable[str]) -> frozenset[str]:
    """Select the addresses that pods of a node may use.

    Args:
        node: the node as its object reads.
        addresses: IPv4 addresses.

    Returns:
        Those that the agent reports as used; of an agent of Cilium 1.20, which does not report them, all those that
        it lists.
    """
    return node.used.intersection(addresses) if node.demand is None else covered(addresses, node.demand.listed)


def pool(interfaces: Iterable[Interface], node: Node) -> dict[str, str]:
    """Map each address that pods may get to its interface's id.

    Args:
        interfaces: all interfaces of the node's instance.
        node: the node whose rules hold.

    Returns:
        Address to interface id, over the eligible interfaces; an address that EC2 reports on two
        interfaces while it moves counts once, for the lower device index. Of interfaces on other
        cards only what the object shows already (another operator may have put it there).
    """
    interfaces = tuple(interfaces)
    found: dict[str, str] = {}
    for interface in eligible(interfaces, node):
        for address in pod_addresses(interface, node):
            found.setdefault(address, interface.id)
    return found | kept(interfaces, node)


def kept(interfaces: Iterable[Interface], node: Node) -> dict[str, str]:
    """Map each address on another card that the object shows to its interface's id; arguments as of `pool`."""
    return {
        address: interface.id
        for interface in on_other_cards(interfaces, node)
        for address in pod_addresses(interface, node)
        if node.pool.get(address) == interface.id
    }
