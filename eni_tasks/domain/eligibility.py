"""Which of an instance's interfaces may serve pods, and which only take up a slot.

Eligible: attached on the network card for pods (the type's default card), with a private IPv4 address, device index at
or above the node's first-interface-index, not excluded by tags, and ours to manage. Everything else that hangs on that
card still occupies a slot and a device index. How much fits on an interface is `capacity`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.model.network import matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node


def occupies_slot(interface: Interface, network_card: int) -> bool:
    """Tell whether an interface takes a slot and a device index of a network card.

    An interface that is attaching or detaching does so too, though it gives no addresses yet or any
    more. Each card has slots and indexes of its own.
    """
    return (
        interface.device_index is not None
        and interface.network_card == network_card
        and interface.attachment_status != "detached"
    )


def occupying(interfaces: Iterable[Interface], network_card: int) -> tuple[Interface, ...]:
    """Select the interfaces that take a slot of a network card, in order of device index, then id."""
    held = (interface for interface in interfaces if occupies_slot(interface, network_card))
    return tuple(sorted(held, key=lambda interface: (interface.device_index, interface.id)))


def first_interface(interfaces: Iterable[Interface], network_card: int) -> Interface | None:
    """Find the instance's own first interface: device index 0 of the default card, else of card 0."""
    attached = tuple(interfaces)
    firsts = (i for card in (network_card, 0) for i in occupying(attached, card) if i.device_index == 0)
    return next(firsts, None)


def is_unmanaged(interface: Interface, node: Node, own_account: str) -> bool:
    """Tell whether an interface belongs to another owner although it is attached to our instance.

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
    return tuple(
        interface
        for interface in _for_pods(interfaces, node)
        if interface.network_card == node.network_card and (interface.device_index or 0) >= node.first_interface_index
    )


def on_other_cards(interfaces: Iterable[Interface], node: Node) -> tuple[Interface, ...]:
    """Select the interfaces on other cards whose addresses pods may keep; they never get more.

    Args:
        interfaces: all interfaces of the node's instance.
        node: the node whose rules hold.

    Returns:
        Those that would be eligible but for their card.
    """
    return tuple(i for i in _for_pods(interfaces, node) if i.network_card != node.network_card)


def _for_pods(interfaces: Iterable[Interface], node: Node) -> list[Interface]:
    attached = tuple(interfaces)
    first = first_interface(attached, node.network_card)
    own_account = first.owner_id if first else ""
    found = [
        interface
        for interface in attached
        if interface.attachment_status == "attached"
        and interface.device_index is not None
        and interface.primary_address
        and not (node.exclude_interface_tags and matches(node.exclude_interface_tags, interface.tags))
        and not is_unmanaged(interface, node, own_account)
    ]
    return sorted(found, key=lambda interface: (interface.device_index, interface.id))
