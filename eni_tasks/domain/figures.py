"""A node's figures, computed from its state each time rather than kept: what it holds, uses, needs.

Everybody who shows or uses such figures takes them from here. What follows from them is the
planner's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import capacity, watermark
from eni_tasks.domain.addresses import pool
from eni_tasks.domain.eligibility import occupying
from eni_tasks.model.plan import Figures

if TYPE_CHECKING:
    from eni_tasks.model.network import Limits
    from eni_tasks.model.node import Policy
    from eni_tasks.model.state import NodeState


def figures(state: NodeState, policy: Policy) -> Figures:
    """Compute a node's figures, as far as its facts are known.

    Args:
        state: the node and its interfaces.
        policy: for the default of pre-allocate.

    Returns:
        All figures; needed, excess and what depends on limits are 0 while interfaces or limits are
        unknown, or when the instance shows no interface at all.
    """
    node, interfaces, limits = state.node, state.interfaces or (), state.limits
    available, used = len(pool(interfaces, node)), watermark.used_count(node)
    if not interfaces or limits is None:
        return Figures(available=available, used=used, interfaces=len(occupying(interfaces)))
    pre_allocate = capacity.effective_pre_allocate(node, policy)
    return Figures(
        available=available,
        used=used,
        needed=watermark.needed(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            cap=cap(state, limits),
        ),
        excess=watermark.excess(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            max_above_watermark=node.max_above_watermark,
        ),
        capacity=capacity.instance_capacity(limits, node, interfaces),
        interfaces=len(occupying(interfaces)),
        remaining_interfaces=capacity.remaining_interfaces(limits, node, interfaces),
        free_slots=capacity.free_slots(limits, interfaces),
    )


def cap(state: NodeState, limits: Limits) -> int:
    """Give the most addresses the node may hold: its max-allocate as given, else what it can carry.

    Args:
        state: the node and its interfaces.
        limits: what the instance type can carry.

    Returns:
        The cap, 0 for none.
    """
    node = state.node
    return node.max_allocate or capacity.instance_capacity(limits, node, state.interfaces or ())
