"""A node's figures, computed from its state each time rather than kept: what it holds, uses, needs.

Status, metrics and the planner take them from here; the planner decides what follows from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import capacity, watermark
from eni_tasks.domain.addresses import pool
from eni_tasks.domain.eligibility import occupying
from eni_tasks.domain.eni_entries import eni_entries, usable_pool
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
        All figures; needed and excess are 0, and capacity is None, while interfaces or limits are unknown, or when the
        instance shows no interface at all. Addresses that the agent can't be shown don't count.
    """
    node, interfaces, limits = state.node, state.interfaces or (), state.limits
    available, used = len(usable_pool(state, eni_entries(state.obj, state))), watermark.used_count(node)
    attached = len(occupying(interfaces, node.network_card))
    if not interfaces or limits is None:
        return Figures(available=available, used=used, interfaces=attached)
    pre_allocate = watermark.pre_allocate(node, policy.pre_allocate_default)
    return Figures(
        available=available,
        used=used,
        needed=watermark.needed(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            cap=cap(state, limits, available),
        ),
        excess=watermark.excess(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            max_above_watermark=node.max_above_watermark,
        ),
        capacity=capacity.instance_capacity(limits, node, interfaces),
        interfaces=attached,
        remaining_interfaces=capacity.remaining_interfaces(limits, node, interfaces),
        free_slots=capacity.free_slots(limits, interfaces),
    )


def cap(state: NodeState, limits: Limits, available: int) -> int:
    """Give the most addresses the node may hold: its max-allocate as given, else what it can carry.

    Args:
        state: the node and its interfaces.
        limits: what the instance type can carry.
        available: the addresses that count.

    Returns:
        The cap, less what the node holds without its counting (see `eni_entries`).
    """
    node, interfaces = state.node, state.interfaces or ()
    fits = capacity.instance_capacity(limits, node, interfaces)
    most = node.max_allocate or fits if fits else 0
    return max(0, most - (len(pool(interfaces, node)) - available))
