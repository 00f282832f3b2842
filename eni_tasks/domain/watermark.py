"""How many addresses a node is short of, how many it holds beyond its watermarks, who comes first.

Plain arithmetic on counts, so that the watcher can use it on an object alone and the planner on
what EC2 says. What a node can hold at most comes from `capacity`; who may be served from where is
`placement`'s and `creation`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.model.plan import Urgency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eni_tasks.model.network import NodeName
    from eni_tasks.model.node import Node
    from eni_tasks.model.plan import Figures


def used_count(node: Node) -> int:
    """Count the addresses in use: entries of `status.ipam.used`, in the pool or not.

    Args:
        node: the node as its object reads.

    Returns:
        The number of addresses that the agent reports as used; for an agent of Cilium 1.20, used or waited for.
    """
    if node.demand is not None:
        return max(0, node.demand.ipv4 - node.demand.pre_allocate)
    return len(node.used)


def pre_allocate(node: Node, default: int) -> int:
    """Give the free addresses that a node wants.

    Args:
        node: the node as its object reads.
        default: what it wants if its object gives no figure.

    Returns:
        The object's own figure, else the default; 0 if the agent asks for nothing but IPv6.
    """
    if node.demand is not None and node.demand.ipv6 > 0 and node.demand.ipv4 == 0:
        return 0
    return node.pre_allocate or default


def needed(*, available: int, used: int, pre_allocate: int, min_allocate: int, cap: int | None) -> int:
    """Count the addresses that are missing to the node's watermarks.

    Args:
        available: distinct addresses on eligible interfaces, used or not.
        used: addresses in use.
        pre_allocate: free addresses wanted, defaults already applied; negative means "only
            min_allocate counts" (objects of Cilium 1.6 may say so).
        min_allocate: addresses wanted in total; 0 or less is none.
        cap: most addresses the node may hold; None is no cap.

    Returns:
        The deficit, never negative.
    """
    short = pre_allocate - (available - used)
    if min_allocate > 0:
        short = max(short, min_allocate - available)
    return capped(short, available=available, cap=cap)


def surge(*, pending_pods: int, needed_count: int) -> int:
    """Count the addresses to ask for beyond the need because more pods than that wait; 0 if nothing is needed."""
    return max(0, pending_pods - needed_count) if needed_count > 0 else 0


def wanted(
    *, needed_count: int, available: int, max_above_watermark: int, cap: int | None, pending_pods: int = 0
) -> int:
    """Count the addresses to ask for: the need, what may lie above it, and the surge, within the cap.

    The cap is hard: it bounds the sum, not only the need.

    Args:
        needed_count: the deficit, from `needed`.
        available: distinct addresses on eligible interfaces.
        max_above_watermark: addresses that may be asked for in advance.
        cap: most addresses the node may hold; None is no cap.
        pending_pods: pods of the node that wait, without those on the host's network.

    Returns:
        0 if nothing is needed, else at least the need as far as the cap allows.
    """
    if needed_count <= 0:
        return 0
    beyond = max(0, max_above_watermark) + surge(pending_pods=pending_pods, needed_count=needed_count)
    return capped(needed_count + beyond, available=available, cap=cap)


def capped(count: int, *, available: int, cap: int | None) -> int:
    """Bound a number of further addresses by what still fits below the cap (None: no cap), and by 0."""
    return max(0, count if cap is None else min(count, cap - available))


def excess(*, available: int, used: int, pre_allocate: int, min_allocate: int, max_above_watermark: int) -> int:
    """Count the addresses that the node holds beyond its watermarks.

    Up to min_allocate + max_above_watermark nothing is excess: giving back what the next pass would
    ask for again is a loop that never ends.

    Args:
        available: distinct addresses on eligible interfaces, used or not.
        used: addresses in use.
        pre_allocate: free addresses wanted, defaults already applied.
        min_allocate: addresses wanted in total.
        max_above_watermark: addresses that may lie above the watermark.

    Returns:
        The excess, never negative, and 0 whenever something is needed.
    """
    upper = min_allocate + max_above_watermark
    if used <= upper:
        if available <= upper:
            return 0
        if used + pre_allocate <= upper:
            return available - upper
    return max(0, available - used - pre_allocate - max_above_watermark)


def urgency(figures: Figures) -> Urgency:
    """Say how pressing a node's work is.

    Args:
        figures: the node's figures.

    Returns:
        EMPTY when addresses are needed and none is free, then DEFICIT, RELEASE, CLEANUP.
    """
    if figures.needed > 0:
        return Urgency.EMPTY if figures.available <= figures.used else Urgency.DEFICIT
    return Urgency.RELEASE if figures.excess > 0 else Urgency.CLEANUP


def ordering_key(figures: Figures, *, releasing: bool) -> int:
    """Give the figure by which nodes are ordered: the need, else minus the excess, else 0.

    Args:
        figures: the node's figures.
        releasing: whether excess addresses are given back at all.

    Returns:
        Positive for a deficit, negative for an excess that is released, 0 for rest.
    """
    if figures.needed > 0:
        return figures.needed
    return -figures.excess if releasing else 0


def in_order(nodes: Mapping[NodeName, Figures], *, releasing: bool) -> list[NodeName]:
    """Order nodes for attention: largest deficit first, then those at rest, then largest excess.

    Args:
        nodes: figures by node name.
        releasing: whether excess addresses are given back at all.

    Returns:
        All names; equal keys by name, so that the order is the same everywhere.
    """

    def rank(name: NodeName) -> tuple[int, int, NodeName]:
        key = ordering_key(nodes[name], releasing=releasing)
        group = 0 if key > 0 else 1 if key == 0 else 2
        return group, -abs(key), name

    return sorted(nodes, key=rank)
