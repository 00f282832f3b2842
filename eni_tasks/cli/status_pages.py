"""The pages of `eni-tasks status`: the fleet, and one node, in sentences and tables with the most urgent first."""

from __future__ import annotations

from collections.abc import Mapping

from eni_tasks.cli.events import COLUMNS as EVENTS
from eni_tasks.cli.events import row as event_row
from eni_tasks.cli.output import Table, duration, sentence
from eni_tasks.model.plan import Reason
from eni_tasks.model.work import WorkKind
from eni_tasks.services.status import FleetStatus, NodeDetails, NodeStatus
from eni_tasks.state.limiter import LIMITS
from eni_tasks.state.summary import BucketSummary, StateSummary, WorkState, WorkStatus

NODES = ("node", "available", "used", "needed", "work", "why")
WORK = ("work", "pending", "queued", "running", "waiting", "overdue", "oldest overdue")
BUCKETS = ("action", "tokens", "of", "per second", "throttled", "breaker")
SUBNETS = ("subnet", "zone", "available", "free as read", "reserved", "cooldown", "no prefix for")
INTERFACES = ("interface", "device", "subnet", "status", "primary", "addresses", "used", "list")
NAMES_SHOWN = 5


def fleet_page(fleet: FleetStatus, *, everything: bool) -> list[str | Table]:
    """The fleet in sentences and tables, the most urgent first."""
    now = fleet.summary.now
    shown = [each for each in fleet.nodes if everything or _is_listed(each)]
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
            f"PAUSED for {duration(summary.now - summary.pause.since)} by {summary.pause.who}: "
            f"{sentence(summary.pause.why)} `eni-tasks resume` lets mutations continue."
        )
    if summary.orphans_count:
        lines.append(f"{summary.orphans_count} interfaces were left behind; `eni-tasks orphans --dry-run` lists them.")
    if summary.generation is None:
        lines.append("Redis is empty, and no watcher has noticed yet: is one running?")
    if summary.read_failure:
        lines.append(f"The last read of EC2 failed: {sentence(summary.read_failure)}")
    for action, breaker in summary.breakers.items():
        why = sentence(breaker.why)
        when = f"in {duration(breaker.until - summary.now)}" if breaker.until > summary.now else "by the next caller"
        if action == LIMITS:
            lines.append(f"{action} is refused: {why} Nodes of unknown instance types wait.")
        else:
            lines.append(
                f"{action} is stopped for all workers: {why} It is probed {when}; `eni-tasks resume` tries it now."
            )
    return lines


def _age(fleet: FleetStatus) -> str:
    summary = fleet.summary
    if summary.infrastructure_at is None:
        return "EC2 was not read yet: no subnets are known."
    facts = f"Facts: subnets read {duration(summary.now - summary.infrastructure_at)} ago"
    if fleet.oldest_read_at is not None:
        facts += f", every instance within {duration(summary.now - fleet.oldest_read_at)}"
    return facts + (f"; {fleet.unread_count} instances not yet." if fleet.unread_count else ".")


def _is_listed(each: NodeStatus) -> bool:
    waits = each.work is not None and each.work.state is WorkState.WAITING
    return not each.ready or waits or each.reason == Reason.AT_CAPACITY.value


def _node_row(each: NodeStatus, now: float) -> tuple[object, ...]:
    work = work_text(each.work, now) if each.work else "idle"
    more = each.trouble or each.last_action
    why = f"{each.reason}: {more}" if more else each.reason
    return each.node, each.available, each.used, each.needed, work, why


def work_text(work: WorkStatus, now: float) -> str:
    """The state of a piece of work, and how long a wait still lasts."""
    if work.state is WorkState.WAITING:
        return f"waits {duration(work.until - now)}"
    return work.state.value


def _work(summary: StateSummary) -> Table:
    rows = []
    for kind, work in summary.work.items():
        queued = work.pending_count - work.claimed_count - work.waiting_count
        oldest = duration(work.oldest_overdue_seconds) if work.overdue_count else ""
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
        count = f" ({one.failures} failed runs in a row)" if one.failures else ""
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
        page.append(Table(EVENTS, [event_row(event) for event in one.events], "Last events"))
    return page


def work_lines(work: Mapping[WorkKind, WorkStatus], now: float) -> list[str]:
    """What each kind of a node's pending work is doing."""
    return [f"{kind.value}: {_until(each, now)}." for kind, each in work.items()]


def _until(work: WorkStatus, now: float) -> str:
    length = duration(work.until - now)
    return {
        WorkState.QUEUED: f"a message was sent; if no worker takes it, another is sent in {length}",
        WorkState.RUNNING: f"a worker has claimed it; its lease ends in {length} unless it is renewed",
        WorkState.WAITING: f"waits for {length}; `eni-tasks maintain` ends the wait",
        WorkState.OVERDUE: "no worker took it in time; it is requeued at once if a watcher runs",
    }[work.state]
