"""How many addresses fit: on one interface, and on the whole instance. Counted in slots.

Each interface has a number of slots. The primary address takes one, and so does each single address and each prefix.

One capacity serves the need, the metrics and "at capacity" alike, so that a full node is never
taken for one in deficit. All limits are those of the default network card, and EC2's figure of addresses per
interface, which is the number of its slots, includes the primary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain.addresses import kept
from eni_tasks.domain.eligibility import eligible, occupying
from eni_tasks.domain.prefixes import OFF, SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.domain.prefixes import Delegation
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Node


def secondaries_per_interface(limits: Limits) -> int:
    """Give the number of slots of an interface for what it carries besides its primary."""
    return max(0, limits.ipv4_per_interface - 1)


def addresses_per_interface(limits: Limits, node: Node) -> int:
    """Give the number of addresses that pods can get from one interface without prefixes."""
    return secondaries_per_interface(limits) + (1 if node.use_primary_address else 0)


def room(interface: Interface, limits: Limits) -> int:
    """Count the free slots of an interface: each takes a single address or a prefix.

    The primary always has a slot of its own, whether pods may get it or not.

    Args:
        interface: the interface.
        limits: what the instance type can carry.

    Returns:
        Never less than 0.
    """
    return max(0, secondaries_per_interface(limits) - len(interface.addresses) - len(interface.prefixes))


def instance_capacity(
    limits: Limits, node: Node, interfaces: Iterable[Interface] = (), delegation: Delegation = OFF
) -> int:
    """Give the most addresses that the node can ever hold.

    Args:
        limits: what the instance type can carry.
        node: the node, for first-interface-index and use-primary-address.
        interfaces: all interfaces of the instance; those that are kept from pods take their share
            away, a prefix holds sixteen addresses in one slot, also one that is left from earlier delegation, and what
            the object shows of other cards comes on top.
        delegation: says which interfaces get prefixes: sixteen addresses fit in each of their free slots, and of those
            of interfaces that may still be attached.

    Returns:
        The capacity; 0 when no interface can serve pods.
    """
    attached = tuple(interfaces)
    held = occupying(attached, limits.network_card)
    usable = eligible(attached, node)
    lost = sum(
        1
        for interface in held
        if interface.attachment_status == "attached"
        and (interface.device_index or 0) >= node.first_interface_index
        and interface not in usable
    )
    count = max(0, limits.max_interfaces - node.first_interface_index - lost)
    prefixes = sum(len(interface.prefixes) for interface in usable)
    if delegation.on:
        prefixes += sum(room(interface, limits) for interface in usable if delegation.takes_prefixes(interface))
        prefixes += max(0, count - len(usable)) * secondaries_per_interface(limits)
    return count * addresses_per_interface(limits, node) + (SIZE - 1) * prefixes + len(kept(attached, node))


def free_slots(limits: Limits, interfaces: Iterable[Interface]) -> int:
    """Count the interfaces that can still be attached; negative when more hang there than allowed."""
    return limits.max_interfaces - len(occupying(interfaces, limits.network_card))


def remaining_interfaces(limits: Limits, node: Node, interfaces: Iterable[Interface]) -> int:
    """Count the interfaces that can still take addresses: eligible ones with room, and free slots."""
    held = tuple(interfaces)
    with_room = sum(1 for interface in eligible(held, node) if room(interface, limits) > 0)
    return with_room + free_slots(limits, held)


def pre_allocate_default(limits: Limits, node: Node, interfaces: Iterable[Interface], default: int) -> int:
    """Give the pre-allocate to write into an object that has none.

    An agent waits at its start until the pool holds that many, so it must not be told more than the
    node can ever hold.

    Args:
        limits: what the instance type can carry.
        node: the node.
        interfaces: all interfaces of the instance.
        default: the usual figure.

    Returns:
        The default, less on small instances, with excluded interfaces, or with a small max-allocate; 0 if
        no interface can serve pods. Prefixes that it may get don't count: there may be none.
    """
    fits = instance_capacity(limits, node, interfaces)
    return min(default, fits, node.max_allocate or fits)
