"""Which of an instance's interfaces may serve pods, and which only take up a slot.

Eligible: attached on network card 0, device index at or above the node's first-interface-index, not
excluded by tags, and ours to manage. Everything else that hangs on card 0 still occupies a slot and
a device index. How much fits on an interface is `capacity`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain.tags import matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node


def occupies_slot(interface: Interface) -> bool:
    """Tell whether an interface takes a slot and a device index of network card 0.

    An interface that is attaching or detaching does so too, though it gives no addresses yet or any
    more. Other cards have slots and indexes of their own, which we never use.
    """
    return (
        interface.device_index is not None and interface.network_card == 0 and interface.attachment_status != "detached"
    )


def occupying(interfaces: Iterable[Interface]) -> tuple[Interface, ...]:
    """Select the interfaces that take a slot of card 0, in order of device index, then id."""
    held = (interface for interface in interfaces if occupies_slot(interface))
    return tuple(sorted(held, key=lambda interface: (interface.device_index, interface.id)))


def first_interface(interfaces: Iterable[Interface]) -> Interface | None:
    """Find the instance's own first interface: device index 0 of card 0."""
    return next((interface for interface in occupying(interfaces) if interface.device_index == 0), None)


def is_unmanaged(interface: Interface, node: Node, own_account: str) -> bool:
    """Tell whether an interface belongs to somebody else although it hangs on our instance.

    Args:
        interface: an interface of the node's instance.
        node: the node, for its VPC.
        own_account: the account that owns the instance's first interface, "" if unknown.

    Returns:
        True for another VPC, another account, or an interface that an AWS service manages.
    """
    foreign_vpc = bool(node.vpc_id) and interface.vpc_id != node.vpc_id
    foreign_account = bool(own_account) and bool(interface.owner_id) and interface.owner_id != own_account
    return foreign_vpc or foreign_account or interface.requester_managed


def eligible(interfaces: Iterable[Interface], node: Node) -> tuple[Interface, ...]:
    """Select the interfaces whose addresses may go to pods.

    Args:
        interfaces: all interfaces of the node's instance.
        node: the node whose rules hold.

    Returns:
        The eligible ones, in order of device index, then id.
    """
    held = occupying(interfaces)
    first = first_interface(held)
    own_account = first.owner_id if first else ""
    return tuple(
        interface
        for interface in held
        if interface.attachment_status == "attached"
        and (interface.device_index or 0) >= node.first_interface_index
        and not (node.exclude_interface_tags and matches(node.exclude_interface_tags, interface.tags))
        and not is_unmanaged(interface, node, own_account)
    )
