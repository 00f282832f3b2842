"""The fleet for people: what concerns everybody, the nodes that somebody should look at, work, budgets, subnets."""

from __future__ import annotations

from eni_tasks.cli.output import Table, ago
from eni_tasks.model.plan import Reason
from eni_tasks.services.status import FleetStatus, NodeStatus
from eni_tasks.state.limiter import LIMITS
from eni_tasks.state.summary import BucketSummary, StateSummary, WorkState, WorkStatus

NODES = ("node", "available", "used", "needed", "work", "why")
WORK = ("work", "pending", "queued", "running", "waiting", "overdue", "oldest overdue")
BUCKETS = ("action", "tokens", "of", "per second", "throttled", "breaker")
SUBNETS = ("subnet", "zone", "available", "free as read", "reserved", "cooldown")
NAMES_SHOWN = 5


def fleet_page(fleet: FleetStatus, *, everything: bool) -> list[str | Table]:
    """The fleet in sentences and tables, the most pressing first."""
    now = fleet.summary.now
    shown = [each for each in fleet.nodes if everything or _of_interest(each)]
    page: list[str | Table] = [_head(fleet), *_warnings(fleet.summary), _age(fleet)]
    if fleet.creating:
        some = ", ".join(fleet.creating[:NAMES_SHOWN]) + (", …" if len(fleet.creating) > NAMES_SHOWN else "")
        page.append(f"Interfaces being created: {len(fleet.creating)}, of {some}.")
    if fleet.reasons:
        most_first = sorted(fleet.reasons.items(), key=lambda reason: reason[1], reverse=True)
        page.append(Table(("why not at size", "nodes"), most_first))
    if shown:
        page.append(Table(NODES, [_node_row(each, now) for each in shown], "Nodes"))
    page += [_work(fleet.summary), _buckets(fleet.summary), _subnets(fleet.summary)]
    return page


def _head(fleet: FleetStatus) -> str:
    if not fleet.total_count:
        return "No nodes are known: is a watcher running, and does it have the same ENI_TASKS_CLUSTER?"
    return (
        f"{fleet.total_count} nodes: {fleet.ready_count} at size, {fleet.in_deficit_count} in deficit; "
        f"{fleet.at_capacity_count} at capacity, {fleet.waiting_count} waiting."
    )


def _warnings(summary: StateSummary) -> list[str]:
    lines = []
    if summary.pause is not None:
        lines.append(
            f"PAUSED for {ago(summary.now - summary.pause.since)} by {summary.pause.who}: {summary.pause.why}. "
            "`eni-tasks resume` lets mutations continue."
        )
    if summary.orphans_count:
        lines.append(f"{summary.orphans_count} interfaces were left behind; `eni-tasks orphans --dry-run` lists them.")
    if summary.generation is None:
        lines.append("Redis is empty, and no watcher has noticed yet: is one running?")
    if summary.read_failure:
        lines.append(f"The last read of EC2 failed: {summary.read_failure.rstrip('.')}.")
    for action, breaker in summary.breakers.items():
        why = breaker.why.rstrip(".")
        when = f"in {ago(breaker.until - summary.now)}" if breaker.until > summary.now else "by the next caller"
        if action == LIMITS:
            lines.append(f"{action} is refused: {why}. Nodes of unknown instance types wait.")
        else:
            lines.append(
                f"{action} is stopped for all workers: {why}. It is probed {when}; `eni-tasks resume` tries it now."
            )
    return lines


def _age(fleet: FleetStatus) -> str:
    summary = fleet.summary
    if summary.infrastructure_at is None:
        return "EC2 was not read yet: no subnets are known."
    said = f"Facts: subnets read {ago(summary.now - summary.infrastructure_at)} ago"
    if fleet.oldest_read_at is not None:
        said += f", every instance within {ago(summary.now - fleet.oldest_read_at)}"
    return said + (f"; {fleet.unread_count} instances not yet." if fleet.unread_count else ".")


def _of_interest(each: NodeStatus) -> bool:
    waits = each.work is not None and each.work.state is WorkState.WAITING
    return not each.ready or waits or each.reason == Reason.AT_CAPACITY.value


def _node_row(each: NodeStatus, now: float) -> tuple[object, ...]:
    work = in_words(each.work, now) if each.work else "idle"
    more = each.trouble or each.last_action
    why = f"{each.reason}: {more}" if more else each.reason
    return each.node, each.available, each.used, each.needed, work, why


def in_words(work: WorkStatus, now: float) -> str:
    """What becomes of a node's work, and for how long."""
    if work.state is WorkState.WAITING:
        return f"waits {ago(work.until - now)}"
    return work.state.value


def _work(summary: StateSummary) -> Table:
    rows = []
    for kind, work in summary.work.items():
        queued = work.pending_count - work.claimed_count - work.waiting_count
        oldest = ago(work.oldest_overdue_seconds) if work.overdue_count else ""
        counts = (work.pending_count, queued, work.claimed_count, work.waiting_count, work.overdue_count)
        rows.append((kind.value, *counts, oldest))
    messages = ", ".join(f"{queue} {count}" for queue, count in summary.queues.items())
    return Table(WORK, rows, f"Work (messages that wait: {messages})")


def _buckets(summary: StateSummary) -> Table:
    rows = [
        (action, *_bucket(bucket, summary.now), summary.breakers[action].why if action in summary.breakers else "")
        for action, bucket in summary.buckets.items()
    ]
    return Table(BUCKETS, rows, "EC2 rate limits")


def _bucket(bucket: BucketSummary, now: float) -> tuple[str, str, str, str]:
    throttled = f"{ago(now - bucket.throttled_at)} ago" if bucket.throttled_at is not None else ""
    if not bucket.size:
        return "no limit", "", "", throttled
    rate = f"{bucket.refill_per_second * bucket.share:g}"
    return f"{bucket.tokens:.0f}", f"{bucket.size:g}", rate, throttled


def _subnets(summary: StateSummary) -> Table:
    rows = [
        (
            subnet.id,
            subnet.availability_zone,
            subnet.available,
            subnet.free,
            subnet.reserved,
            ago(subnet.cooling_down_until - summary.now) if subnet.cooling_down_until else "",
        )
        for subnet in sorted(summary.subnets, key=lambda subnet: subnet.available)
    ]
    return Table(SUBNETS, rows, "Subnets")
