"""What an object alone tells about its node, and about a read when nothing else is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import watermark
from eni_tasks.domain.addresses import may_use, pool
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
    pre_allocate = watermark.pre_allocate(node, pre_allocate_default)
    return Figures(
        available=available,
        used=used,
        needed=watermark.needed(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            cap=node.max_allocate or None,
        ),
        excess=watermark.excess(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            max_above_watermark=node.max_above_watermark,
        ),
    )


def missing_addresses(node: Node, interfaces: Iterable[Interface]) -> frozenset[str]:
    """Name the addresses that a node's object shows in its pool and that its interfaces don't have.

    Args:
        node: the node as its object reads.
        interfaces: what the instance has.
    """
    return frozenset(node.pool.keys() - pool(interfaces, node).keys())


def lacks_used(node: Node, interfaces: Iterable[Interface]) -> bool:
    """Say whether a read lacks addresses that pods may use, as far as the object alone can tell.

    An object that shows none of the instance's interfaces is about another instance: the node was replaced, and no
    pod uses the old addresses any more.

    Args:
        node: the node as its object reads.
        interfaces: what the read shows.
    """
    shown = tuple(interfaces)
    same_instance = any(interface.id in node.shown_interfaces for interface in shown)
    return same_instance and bool(may_use(node, missing_addresses(node, shown)))
