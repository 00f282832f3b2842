"""The fleet for people: what concerns everybody, the nodes that somebody should look at, work, budgets, subnets."""

from __future__ import annotations

from eni_tasks.cli.output import Table, ago
from eni_tasks.model.plan import Reason
from eni_tasks.ports.lookout import BudgetLook, Look
from eni_tasks.ports.standing import Doing, Standing
from eni_tasks.ports.work import READS
from eni_tasks.services.overview import Fleet, FleetNode

NODES = ("node", "available", "used", "needed", "work", "why")
WORK = ("work", "pending", "queued", "running", "waiting", "overdue", "oldest overdue")
BUDGETS = ("action", "tokens", "of", "per second", "throttled", "breaker")
SUBNETS = ("subnet", "zone", "available", "free as read", "reserved", "benched")
NAMES_SHOWN = 5


def fleet_page(fleet: Fleet, *, everything: bool) -> list[str | Table]:
    """The fleet in sentences and tables, the most pressing first."""
    now = fleet.look.now
    shown = [each for each in fleet.nodes if everything or _of_interest(each)]
    page: list[str | Table] = [_head(fleet), *_warnings(fleet.look), _age(fleet)]
    if fleet.making:
        some = ", ".join(fleet.making[:NAMES_SHOWN]) + (", …" if len(fleet.making) > NAMES_SHOWN else "")
        page.append(f"Interfaces in the making: {len(fleet.making)}, of {some}.")
    if fleet.reasons:
        most_first = sorted(fleet.reasons.items(), key=lambda reason: reason[1], reverse=True)
        page.append(Table(("why not at size", "nodes"), most_first))
    if shown:
        page.append(Table(NODES, [_node_row(each, now) for each in shown], "Nodes"))
    page += [_work(fleet.look), _budgets(fleet.look), _subnets(fleet.look)]
    return page


def _head(fleet: Fleet) -> str:
    if not fleet.total_count:
        return "No nodes are known: is a watcher running, and does it have the same ENI_TASKS_CLUSTER?"
    return (
        f"{fleet.total_count} nodes: {fleet.ready_count} at size, {fleet.in_deficit_count} in deficit; "
        f"{fleet.at_capacity_count} at capacity, {fleet.waiting_count} waiting."
    )


def _warnings(look: Look) -> list[str]:
    lines = []
    if look.pause is not None:
        lines.append(
            f"PAUSED for {ago(look.now - look.pause.since)} by {look.pause.who}: {look.pause.why}. "
            "`eni-tasks resume` lets mutations go on."
        )
    if look.orphans_count:
        lines.append(f"{look.orphans_count} interfaces were left behind; `eni-tasks orphans --dry-run` tells which.")
    if look.epoch is None:
        lines.append("Redis is empty, and no watcher has noticed yet: is one running?")
    for action, breaker in look.breakers.items():
        why = breaker.why.rstrip(".")
        when = f"in {ago(breaker.until - look.now)}" if breaker.until > look.now else "by the next caller"
        if action == READS:
            lines.append(f"All mutations are stopped until EC2 was read again: {why}.")
        else:
            lines.append(
                f"{action} is stopped for everybody: {why}. It is probed {when}; `eni-tasks resume` tries it now."
            )
    return lines


def _age(fleet: Fleet) -> str:
    look = fleet.look
    if look.infrastructure_at is None:
        return "EC2 was not read yet: no subnets are known."
    said = f"Facts: subnets read {ago(look.now - look.infrastructure_at)} ago"
    if fleet.oldest_read_at is not None:
        said += f", every instance within {ago(look.now - fleet.oldest_read_at)}"
    return said + (f"; {fleet.unread_count} instances not yet." if fleet.unread_count else ".")


def _of_interest(each: FleetNode) -> bool:
    waits = each.standing is not None and each.standing.doing is Doing.WAITING
    return not each.ready or waits or each.reason == Reason.AT_CAPACITY.value


def _node_row(each: FleetNode, now: float) -> tuple[object, ...]:
    work = in_words(each.standing, now) if each.standing else "idle"
    more = each.trouble or each.last_action
    why = f"{each.reason}: {more}" if more else each.reason
    return each.node, each.available, each.used, each.needed, work, why


def in_words(standing: Standing, now: float) -> str:
    """What becomes of a node's work, and for how long."""
    if standing.doing is Doing.WAITING:
        return f"waits {ago(standing.until - now)}"
    return standing.doing.value


def _work(look: Look) -> Table:
    rows = []
    for kind, work in look.work.items():
        queued = work.pending_count - work.claimed_count - work.waiting_count
        oldest = ago(work.oldest_overdue_seconds) if work.overdue_count else ""
        counts = (work.pending_count, queued, work.claimed_count, work.waiting_count, work.overdue_count)
        rows.append((kind.value, *counts, oldest))
    messages = ", ".join(f"{queue} {count}" for queue, count in look.queues.items())
    return Table(WORK, rows, f"Work (messages that wait: {messages})")


def _budgets(look: Look) -> Table:
    rows = [
        (action, *_bucket(budget, look.now), look.breakers[action].why if action in look.breakers else "")
        for action, budget in look.budgets.items()
    ]
    return Table(BUDGETS, rows, "EC2 budgets")


def _bucket(budget: BudgetLook, now: float) -> tuple[str, str, str, str]:
    throttled = f"{ago(now - budget.throttled_at)} ago" if budget.throttled_at is not None else ""
    if not budget.size:
        return "no limit", "", "", throttled
    rate = f"{budget.refill_per_second * budget.share:g}"
    return f"{budget.tokens:.0f}", f"{budget.size:g}", rate, throttled


def _subnets(look: Look) -> Table:
    rows = [
        (
            subnet.id,
            subnet.availability_zone,
            subnet.available,
            subnet.free,
            subnet.reserved,
            ago(subnet.benched_until - look.now) if subnet.benched_until else "",
        )
        for subnet in sorted(look.subnets, key=lambda subnet: subnet.available)
    ]
    return Table(SUBNETS, rows, "Subnets")
