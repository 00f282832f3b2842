"""How many addresses fit: on one interface, and on the whole instance.

One capacity serves the need, the metrics and "at capacity" alike, so that a full node is never
taken for one in deficit. All limits are those of the default network card, and EC2's figure of addresses per
interface includes the primary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain.addresses import kept
from eni_tasks.domain.eligibility import eligible, occupying

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Node

_ADDRESSES_PER_PREFIX = 16


def secondaries_per_interface(limits: Limits) -> int:
    """Give the number of addresses that fit on an interface besides its primary."""
    return max(0, limits.ipv4_per_interface - 1)


def addresses_per_interface(limits: Limits, node: Node) -> int:
    """Give the number of addresses that pods can get from one interface without prefixes."""
    return secondaries_per_interface(limits) + (1 if node.use_primary_address else 0)


def room(interface: Interface, limits: Limits) -> int:
    """Count the addresses that still fit on an interface.

    Every secondary takes one of its slots and so does every prefix; the primary always has its own,
    whether pods may get it or not.

    Args:
        interface: the interface.
        limits: what the instance type can carry.

    Returns:
        Free slots, never negative.
    """
    return max(0, secondaries_per_interface(limits) - len(interface.addresses) - len(interface.prefixes))


def instance_capacity(limits: Limits, node: Node, interfaces: Iterable[Interface] = ()) -> int:
    """Give the most addresses that the node can ever hold.

    Args:
        limits: what the instance type can carry.
        node: the node, for first-interface-index and use-primary-address.
        interfaces: all interfaces of the instance; those that are kept from pods take their share
            away, a /28 that is left from earlier delegation holds sixteen in one slot, and what the object
            shows of other cards comes on top.

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
    slots = limits.max_interfaces - node.first_interface_index - lost
    prefixes = sum(len(interface.prefixes) for interface in usable)
    of_prefixes, of_other_cards = (_ADDRESSES_PER_PREFIX - 1) * prefixes, len(kept(attached, node))
    return max(0, slots) * addresses_per_interface(limits, node) + of_prefixes + of_other_cards


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
        no interface can serve pods.
    """
    fits = instance_capacity(limits, node, interfaces)
    return min(default, fits, node.max_allocate or fits)
