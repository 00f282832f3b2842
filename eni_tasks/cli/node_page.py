"""One node for people: what it holds and needs and why, what becomes of its work, and what was done to it."""

from __future__ import annotations

from eni_tasks.cli.events import COLUMNS as EVENTS
from eni_tasks.cli.events import row as event_row
from eni_tasks.cli.output import Table, ago
from eni_tasks.services.status import NodeDetails
from eni_tasks.state.summary import WorkState, WorkStatus

INTERFACES = ("interface", "device", "subnet", "status", "primary", "addresses", "used", "list")


def node_page(one: NodeDetails) -> list[str | Table]:
    """One node in sentences and tables."""
    status = one.status
    machine = f"{status.instance or 'no instance id'}, {status.instance_type or 'type unknown'}"
    page: list[str | Table] = [f"{status.node} ({machine}): {'at size' if status.ready else status.reason}."]
    page += status.explanation
    counts = (f"{status.available} on its interfaces", f"{status.published} in its object", f"{status.used} used")
    page.append(f"Addresses: {', '.join(counts)}, {status.needed} needed.")
    page += [f"{kind.value}: {_until(work, one.now)}." for kind, work in one.work.items()]
    if status.trouble:
        count = f" ({one.failures} failed runs in a row)" if one.failures else ""
        page.append(f"Trouble: {status.trouble.rstrip('.')}{count}.")
    if status.last_action:
        page.append(f"Last action: {status.last_action}.")
    page.append(f"Facts: {f'read {ago(one.now - one.facts_at)} ago' if one.facts_at else 'never read'}.")
    if one.facts_unknown:
        page.append(f"They count as unknown: {one.facts_unknown}.")
    if one.journal:
        page.append(one.journal)
    rows = [
        (
            each.id,
            each.device_index,
            each.subnet,
            each.status,
            each.primary_address,
            len(each.addresses),
            each.used,
            " ".join(each.addresses),
        )
        for each in one.interfaces
    ]
    page.append(Table(INTERFACES, rows, "Interfaces"))
    if one.events:
        page.append(Table(EVENTS, [event_row(event) for event in one.events], "Last events"))
    return page


def _until(work: WorkStatus, now: float) -> str:
    length = ago(work.until - now)
    return {
        WorkState.QUEUED: f"a message is on its way, and is sent again in {length}",
        WorkState.RUNNING: f"a worker is at it; its lease ends in {length} unless it is renewed",
        WorkState.WAITING: f"waits for {length}; `eni-tasks maintain` ends the wait",
        WorkState.OVERDUE: "no worker took it in time; it is requeued at once if a watcher runs",
    }[work.state]
