"""What an object alone tells about its node, and what a read that misses something tells about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import watermark
from eni_tasks.domain.addresses import pool
from eni_tasks.model.plan import Figures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node


def figures_from_object(node: Node, pre_allocate_default: int) -> Figures:
    """Take a node's figures from its object alone: the pool it shows against what it wants.

    Args:
        node: the node as its object reads.
        pre_allocate_default: free addresses wanted where the object gives no number.

    Returns:
        Figures without limits; they may say "needed" of a node that is at its capacity, never the
        other way round.
    """
    available, used = len(node.pool), watermark.used_count(node)
    pre_allocate = node.pre_allocate or pre_allocate_default
    return Figures(
        available=available,
        used=used,
        needed=watermark.needed(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            cap=node.max_allocate,
        ),
        excess=watermark.excess(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            max_above_watermark=node.max_above_watermark,
        ),
    )


def shows_missing_addresses(node: Node, interfaces: Iterable[Interface]) -> bool:
    """Say whether a node's object shows addresses in its pool that its interfaces don't have.

    Args:
        node: the node as its object reads.
        interfaces: what the instance has.
    """
    return not node.pool.keys() <= pool(interfaces, node).keys()


def lacks_known(before: Iterable[Interface], now: Iterable[Interface]) -> bool:
    """Say whether a read lacks an interface, an attachment or an address that an earlier one had.

    Absence in one read is a hint, not a fact (EC2's reads lag): contents are compared, not counts.

    Args:
        before: what is known.
        now: what the read shows.

    Returns:
        True if anything known is missing now.
    """
    shown = {interface.id: interface for interface in now}
    for interface in before:
        found = shown.get(interface.id)
        if found is None or (interface.attachment_status == "attached" != found.attachment_status):
            return True
        if not {*interface.addresses, *interface.prefixes} <= {*found.addresses, *found.prefixes}:
            return True
    return False
