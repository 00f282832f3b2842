"""From what was looked up to the gauges: pure, so that totals come from the whole state and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eni_tasks.model.plan import Reason
from eni_tasks.ports.lookout import Look
from eni_tasks.ports.work import READS
from eni_tasks.services.inspect import NOT_UNDERSTOOD, NodeView


class Sample(NamedTuple):
    """One figure: a metric's name without the prefix, the values of its labels, the value."""

    name: str
    labels: tuple[str, ...]
    value: float


def of_state(look: Look) -> Iterator[Sample]:
    """Give the gauges of work, queues, budgets, breakers, subnets and orphans.

    Args:
        look: everything but the nodes.

    Returns:
        Samples; what is unknown has none.
    """
    yield Sample("paused", (), look.pause is not None)
    yield Sample("orphans", (), look.orphans_count)
    oldest = 0.0 if look.needy_since is None else max(0.0, look.now - look.needy_since)
    yield Sample("oldest_deficit_seconds", (), oldest)
    if look.infrastructure_at is not None:
        yield Sample("infrastructure_age_seconds", (), max(0.0, look.now - look.infrastructure_at))
    if look.inventory_at is not None:
        yield Sample("inventory_age_seconds", (), max(0.0, look.now - look.inventory_at))
    for queue, length in look.queues.items():
        yield Sample("queue_length", (queue,), length)
    for kind, work in look.work.items():
        queued = work.pending_count - work.claimed_count - work.waiting_count
        yield Sample("work_entries", (kind, "queued"), queued)
        yield Sample("work_entries", (kind, "waiting"), work.waiting_count)
        yield Sample("work_entries", (kind, "claimed"), work.claimed_count)
        yield Sample("work_overdue", (kind,), work.overdue_count)
        yield Sample("work_oldest_overdue_seconds", (kind,), work.oldest_overdue_seconds)
    for action, budget in look.budgets.items():
        if budget.size:
            yield Sample("ec2_budget_tokens", (action,), budget.tokens)
            yield Sample("ec2_budget_size", (action,), budget.size)
        yield Sample("ec2_budget_share", (action,), budget.share)
        if budget.throttled_at is not None:
            yield Sample("ec2_throttled_timestamp_seconds", (action,), budget.throttled_at)
    for action in (*look.budgets, READS):
        yield Sample("ec2_breaker_open", (action,), action in look.breakers)
    for subnet in look.subnets:
        zone = subnet.availability_zone
        yield Sample("ipam_available_ips_per_subnet", (subnet.id, zone), subnet.available)
        yield Sample("subnet_benched", (subnet.id,), subnet.benched_until is not None)


def of_fleet(views: Sequence[NodeView], now: float) -> Iterator[Sample]:
    """Give the totals over all nodes.

    Args:
        views: every known node.
        now: Redis' time in seconds.

    Returns:
        Samples; nodes whose figures are unknown count as nodes and nowhere else.
    """
    yield from _of_kind("ipam_ips", {word: sum(getattr(view, word) for view in views) for word in _ADDRESSES})
    yield Sample("ipam_nodes", ("total",), len(views))
    yield Sample("ipam_nodes", ("in-deficit",), sum(view.needed > 0 for view in views))
    yield Sample("ipam_nodes", ("at-capacity",), sum(view.capacity > 0 >= view.remaining_interfaces for view in views))
    reasons = Counter(view.reason for view in views)
    yield from _of_kind("nodes", {reason: reasons[reason] for reason in (*Reason, NOT_UNDERSTOOD)})
    yield Sample("nodes_ready", (), sum(view.ready for view in views))
    yield Sample("nodes_in_trouble", (), sum(bool(view.trouble) for view in views))
    # An instance may carry more than EC2 says it can: that fills nobody else's slots.
    slots = sum(max(0, view.free_slots) for view in views)
    candidates = sum(view.remaining_interfaces - view.free_slots for view in views)
    yield Sample("ipam_available_interfaces", (), slots + candidates)
    yield Sample("ipam_interface_candidates", (), candidates)
    yield Sample("ipam_empty_interface_slots", (), slots)
    read = [view.described_at for view in views if view.described_at is not None]
    if read:
        yield Sample("facts_oldest_age_seconds", (), max(0.0, now - min(read)))


def of_nodes(views: Iterable[NodeView]) -> Iterator[Sample]:
    """Give the gauges of each node.

    Args:
        views: every known node.

    Returns:
        Samples labelled by node.
    """
    for view in views:
        label = (view.node,)
        if view.capacity:
            yield Sample("ipam_available_ips", label, view.capacity)
        yield Sample("ipam_used_ips", label, view.used)
        yield Sample("ipam_needed_ips", label, view.needed)
        yield Sample("ipam_pool_ips", label, view.available)


_ADDRESSES = ("available", "used", "needed")


def _of_kind(name: str, counts: dict[str, int]) -> Iterator[Sample]:
    return (Sample(name, (label,), count) for label, count in counts.items())
