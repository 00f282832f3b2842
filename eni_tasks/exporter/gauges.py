"""The gauges, computed from the state summary and the nodes' status; nothing is read here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eni_tasks.exporter.triggers import TRIGGER_OF_KIND
from eni_tasks.model.plan import Reason
from eni_tasks.services.status import NOT_PUBLISHED, NOT_UNDERSTOOD, NodeStatus
from eni_tasks.state.limiter import LIMITS
from eni_tasks.state.summary import StateSummary


class Sample(NamedTuple):
    """One figure: a metric's name without the prefix, the values of its labels, the value."""

    name: str
    labels: tuple[str, ...]
    value: float


def of_state(summary: StateSummary) -> Iterator[Sample]:
    """Give the gauges of work, queues, rate limits, breakers, subnets and orphans.

    Args:
        summary: everything but the nodes.

    Returns:
        Samples; what is unknown has none.
    """
    yield Sample("paused", (), summary.pause is not None)
    yield Sample("orphans", (), summary.orphans_count)
    oldest = 0.0 if summary.deficit_since is None else max(0.0, summary.now - summary.deficit_since)
    yield Sample("oldest_deficit_seconds", (), oldest)
    if summary.infrastructure_at is not None:
        yield Sample("infrastructure_age_seconds", (), max(0.0, summary.now - summary.infrastructure_at))
    if summary.inventory_at is not None:
        yield Sample("inventory_age_seconds", (), max(0.0, summary.now - summary.inventory_at))
    for queue, length in summary.queues.items():
        yield Sample("queue_length", (queue,), length)
    for kind, work in summary.work.items():
        queued = work.pending_count - work.claimed_count - work.waiting_count
        yield Sample("work_entries", (kind, "queued"), queued)
        yield Sample("work_entries", (kind, "waiting"), work.waiting_count)
        yield Sample("work_entries", (kind, "claimed"), work.claimed_count)
        yield Sample("work_overdue", (kind,), work.overdue_count)
        yield Sample("work_oldest_overdue_seconds", (kind,), work.oldest_overdue_seconds)
        yield Sample(f"ipam_{TRIGGER_OF_KIND[kind]}_folds", (), work.most_merged_count)
    for action, bucket in summary.buckets.items():
        if bucket.size:
            yield Sample("ec2_rate_limit_tokens", (action,), bucket.tokens)
            yield Sample("ec2_rate_limit_size", (action,), bucket.size)
        yield Sample("ec2_rate_limit_share", (action,), bucket.share)
        if bucket.throttled_at is not None:
            yield Sample("ec2_throttled_timestamp_seconds", (action,), bucket.throttled_at)
    for action in dict.fromkeys((*summary.buckets, LIMITS)):
        yield Sample("ec2_breaker_open", (action,), action in summary.breakers)
    for subnet in summary.subnets:
        zone = subnet.availability_zone
        yield Sample("ipam_available_ips_per_subnet", (subnet.id, zone), subnet.available)
        yield Sample("subnet_cooling_down", (subnet.id,), subnet.cooling_down_until is not None)
        yield Sample("subnet_without_prefix", (subnet.id,), subnet.no_prefix_until is not None)


def of_fleet(nodes: Sequence[NodeStatus], now: float) -> Iterator[Sample]:
    """Give the totals over all nodes.

    Args:
        nodes: every known node.
        now: Redis' time in seconds.

    Returns:
        Samples; nodes whose figures are unknown count as nodes and nowhere else.
    """
    yield from _of_kind("ipam_ips", {word: sum(getattr(node, word) for node in nodes) for word in _ADDRESSES})
    yield Sample("ipam_nodes", ("total",), len(nodes))
    yield Sample("ipam_nodes", ("in-deficit",), sum(node.needed > 0 for node in nodes))
    yield Sample("ipam_nodes", ("at-capacity",), sum(_full(node) for node in nodes))
    reasons = Counter(node.reason for node in nodes)
    yield from _of_kind("nodes", {reason: reasons[reason] for reason in (*Reason, NOT_UNDERSTOOD, NOT_PUBLISHED)})
    yield Sample("nodes_ready", (), sum(node.ready for node in nodes))
    yield Sample("nodes_in_trouble", (), sum(bool(node.trouble) for node in nodes))
    # An instance may carry more interfaces than its limit: that takes no slots from other nodes.
    slots = sum(max(0, node.free_slots) for node in nodes)
    candidates = sum(node.remaining_interfaces - node.free_slots for node in nodes)
    yield Sample("ipam_available_interfaces", (), slots + candidates)
    yield Sample("ipam_interface_candidates", (), candidates)
    yield Sample("ipam_empty_interface_slots", (), slots)
    read = [node.described_at for node in nodes if node.described_at is not None]
    if read:
        yield Sample("facts_oldest_age_seconds", (), max(0.0, now - min(read)))


def of_nodes(nodes: Iterable[NodeStatus]) -> Iterator[Sample]:
    """Give the gauges of each node.

    Args:
        nodes: every known node.

    Returns:
        Samples labelled by node.
    """
    for node in nodes:
        label = (node.node,)
        if node.capacity is not None:
            yield Sample("ipam_available_ips", label, node.capacity)
        yield Sample("ipam_used_ips", label, node.used)
        yield Sample("ipam_needed_ips", label, node.needed)
        yield Sample("ipam_pool_ips", label, node.available)


_ADDRESSES = ("available", "used", "needed")


def _full(node: NodeStatus) -> bool:
    return node.capacity is not None and node.remaining_interfaces <= 0


def _of_kind(name: str, counts: dict[str, int]) -> Iterator[Sample]:
    return (Sample(name, (label,), count) for label, count in counts.items())
