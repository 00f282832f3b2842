"""A node's figures, computed each time rather than kept: what it holds, uses, needs.

Status, metrics and the planner take them from its state; the watcher from its object alone. The planner decides what
follows from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.domain import capacity, watermark
from eni_tasks.domain.addresses import pool
from eni_tasks.domain.eligibility import occupying
from eni_tasks.domain.eni_entries import usable_pool
from eni_tasks.domain.prefixes import delegation
from eni_tasks.model.plan import Figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eni_tasks.model.cilium_node import Eni
    from eni_tasks.model.network import Limits
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState


def figures(state: NodeState, policy: Policy, entries: Mapping[str, Eni]) -> Figures:
    """Compute a node's figures, as far as its facts are known.

    Args:
        state: the node and its interfaces.
        policy: for the default of pre-allocate, and for prefix delegation.
        entries: what the agent is shown of the interfaces, from `eni_entries`.

    Returns:
        All figures; needed and excess are 0, and capacity is None, while interfaces or limits are unknown, or when the
        instance shows no interface at all. Addresses that the agent can't be shown don't count.
    """
    node, interfaces, limits = state.node, state.interfaces or (), state.limits
    available = len(usable_pool(state, entries))
    attached = len(occupying(interfaces, node.network_card))
    if not interfaces or limits is None:
        return Figures(available=available, used=watermark.used_count(node), interfaces=attached)
    pre_allocate = watermark.pre_allocate(node, policy.pre_allocate_default)
    return msgspec.structs.replace(
        _against_watermarks(node, available, pre_allocate, cap(state, policy, limits, available)),
        capacity=capacity.instance_capacity(limits, node, interfaces, delegation(state, policy)),
        interfaces=attached,
        remaining_interfaces=capacity.remaining_interfaces(limits, node, interfaces),
        free_slots=capacity.free_slots(limits, interfaces),
    )


def figures_from_object(node: Node, pre_allocate_default: int) -> Figures:
    """Take a node's figures from its object alone: the pool it shows against what it wants.

    Args:
        node: the node as its object reads.
        pre_allocate_default: free addresses wanted where the object gives no number.

    Returns:
        Figures without limits; they may say "needed" of a node that is at its capacity, never the
        other way round.
    """
    pre_allocate = watermark.pre_allocate(node, pre_allocate_default)
    return _against_watermarks(node, len(node.pool), pre_allocate, node.max_allocate or None)


def cap(state: NodeState, policy: Policy, limits: Limits, available: int) -> int:
    """Give the most addresses the node may hold: its max-allocate as given, else what it can carry.

    Args:
        state: the node and its interfaces.
        policy: for prefix delegation.
        limits: what the instance type can carry.
        available: the addresses that count.

    Returns:
        The cap, less what the node holds without its counting (see `eni_entries`).
    """
    node, interfaces = state.node, state.interfaces or ()
    fits = capacity.instance_capacity(limits, node, interfaces, delegation(state, policy))
    most = node.max_allocate or fits if fits else 0
    return max(0, most - (len(pool(interfaces, node)) - available))


def _against_watermarks(node: Node, available: int, pre_allocate: int, most: int | None) -> Figures:
    used = watermark.used_count(node)
    return Figures(
        available=available,
        used=used,
        needed=watermark.needed(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            cap=most,
        ),
        excess=watermark.excess(
            available=available,
            used=used,
            pre_allocate=pre_allocate,
            min_allocate=node.min_allocate,
            max_above_watermark=node.max_above_watermark,
        ),
    )
