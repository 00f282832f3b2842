"""The pages of `eni-tasks status`: the fleet, and one node, in sentences and tables with the most urgent first."""

from __future__ import annotations

from eni_tasks.cli.events import page as events_page
from eni_tasks.cli.output import Table
from eni_tasks.domain.words import counted
from eni_tasks.model.plan import Reason
from eni_tasks.services.sentences import NO_NODES, age, duration, notices, sentence, work_lines, work_text
from eni_tasks.services.status import FleetStatus, NodeDetails, NodeStatus
from eni_tasks.state.summary import BucketSummary, StateSummary, WorkState

NODES = ("node", "available", "used", "needed", "work", "why")
WORK = ("work", "pending", "queued", "running", "waiting", "overdue", "oldest overdue")
BUCKETS = ("action", "tokens", "of", "per second", "throttled", "breaker")
SUBNETS = ("subnet", "zone", "available", "as read", "reserved", "cooldown", "no prefix")
INTERFACES = ("interface", "device", "subnet", "status", "primary", "addresses", "used", "list")
NAMES_SHOWN = 5


def fleet_page(fleet: FleetStatus, *, everything: bool) -> list[str | Table]:
    """The fleet in sentences and tables, the most urgent first."""
    now = fleet.summary.now
    shown = [each for each in fleet.nodes if everything or _is_listed(each)]
    page: list[str | Table] = [_head(fleet)]
    page += [*(notice.sentence for notice in notices(fleet.summary)), age(fleet)]
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
        return NO_NODES
    return (
        f"{counted(fleet.total_count, 'node')}: {fleet.ready_count} at size, {fleet.in_deficit_count} in deficit; "
        f"{fleet.at_capacity_count} at capacity, {fleet.waiting_count} waiting."
    )


def _is_listed(each: NodeStatus) -> bool:
    waits = each.work is not None and each.work.state is WorkState.WAITING
    return not each.ready or waits or each.reason == Reason.AT_CAPACITY.value


def _node_row(each: NodeStatus, now: float) -> tuple[object, ...]:
    work = work_text(each.work, now) if each.work else "idle"
    more = each.trouble or each.last_action
    why = f"{each.reason}: {more}" if more else each.reason
    return each.node, each.available, each.used, each.needed, work, why


def _work(summary: StateSummary) -> Table:
    rows = []
    for kind, work in summary.work.items():
        queued = work.pending_count - work.claimed_count - work.waiting_count
        oldest = duration(work.oldest_overdue_seconds) if work.overdue_count else ""
        counts = (work.pending_count, queued, work.claimed_count, work.waiting_count, work.overdue_count)
        rows.append((kind.value, *counts, oldest))
    messages = ", ".join(f"{queue} {count}" for queue, count in summary.queues.items())
    return Table(WORK, rows, f"Work (messages that wait: {messages})")


def _buckets(summary: StateSummary) -> Table | str:
    if not any(bucket.size for bucket in summary.buckets.values()) and not summary.breakers:
        return "EC2 rate limits: none."
    rows = [
        (action, *_bucket(bucket, summary.now), summary.breakers[action].why if action in summary.breakers else "")
        for action, bucket in summary.buckets.items()
    ]
    return Table(BUCKETS, rows, "EC2 rate limits")


def _bucket(bucket: BucketSummary, now: float) -> tuple[str, str, str, str]:
    throttled = f"{duration(now - bucket.throttled_at)} ago" if bucket.throttled_at is not None else ""
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
            duration(subnet.cooling_down_until - summary.now) if subnet.cooling_down_until else "",
            duration(subnet.no_prefix_until - summary.now) if subnet.no_prefix_until else "",
        )
        for subnet in sorted(summary.subnets, key=lambda subnet: subnet.available)
    ]
    return Table(SUBNETS, rows, "Subnets")


# -- one node -------------------------------------------------------------------------------------


def node_page(one: NodeDetails) -> list[str | Table]:
    """One node in sentences and tables."""
    status = one.status
    machine = f"{status.instance or 'no instance id'}, {status.instance_type or 'type unknown'}"
    page: list[str | Table] = [f"{status.node} ({machine}): {'at size' if status.ready else status.reason}."]
    page += status.explanation
    counts = (f"{status.available} on its interfaces", f"{status.published} in its object", f"{status.used} used")
    page.append(f"Addresses: {', '.join(counts)}, {status.needed} needed, {status.excess} in excess.")
    page += work_lines(one.work, one.now)
    if status.trouble:
        count = f" ({counted(one.failures, 'failed run')} in a row)" if one.failures else ""
        page.append(sentence(f"Trouble: {status.trouble.rstrip('.')}{count}"))
    if status.last_action:
        page.append(sentence(f"Last action: {status.last_action}"))
    page.append(f"Facts: {f'read {duration(one.now - one.facts_at)} ago' if one.facts_at else 'never read'}.")
    if one.facts_unknown:
        page.append(sentence(f"They count as unknown: {one.facts_unknown}"))
    if one.journal:
        page.append(one.journal)
    rows = [
        (
            each.id,
            each.device_index,
            each.subnet,
            each.status,
            each.primary_address,
            each.address_count,
            each.used,
            " ".join((*each.prefixes, *each.addresses)),
        )
        for each in one.interfaces
    ]
    page.append(Table(INTERFACES, rows, "Interfaces"))
    if one.events:
        page.append(events_page(list(one.events), "Last events"))
    return page
