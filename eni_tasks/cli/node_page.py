"""One node for people: what it holds and needs and why, what becomes of its work, and what was done to it."""

from __future__ import annotations

from eni_tasks.cli.events import COLUMNS as EVENTS
from eni_tasks.cli.events import row as event_row
from eni_tasks.cli.output import Table, ago
from eni_tasks.ports.standing import Doing, Standing
from eni_tasks.services.overview import NodeStatus

INTERFACES = ("interface", "device", "subnet", "status", "primary", "addresses", "used", "list")


def node_page(one: NodeStatus) -> list[str | Table]:
    """One node in sentences and tables."""
    view = one.view
    machine = f"{view.instance or 'no instance id'}, {view.instance_type or 'type unknown'}"
    page: list[str | Table] = [f"{view.node} ({machine}): {'at size' if view.ready else view.reason}."]
    page += view.explanation
    counts = (f"{view.available} on its interfaces", f"{view.published} in its object", f"{view.used} used")
    page.append(f"Addresses: {', '.join(counts)}, {view.needed} needed.")
    page += [f"{kind.value}: {_until(standing, one.now)}." for kind, standing in one.work.items()]
    if view.trouble:
        count = f" ({one.failures} failed runs in a row)" if one.failures else ""
        page.append(f"Trouble: {view.trouble.rstrip('.')}{count}.")
    if view.last_action:
        page.append(f"Last action: {view.last_action}.")
    page.append(f"Facts: {f'read {ago(one.now - one.facts_at)} ago' if one.facts_at else 'never read'}.")
    if one.facts_doubt:
        page.append(f"They count as unknown: {one.facts_doubt}.")
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
    if one.history:
        page.append(Table(EVENTS, [event_row(event) for event in one.history], "Last events"))
    return page


def _until(standing: Standing, now: float) -> str:
    length = ago(standing.until - now)
    return {
        Doing.QUEUED: f"a message is on its way, and is sent again in {length}",
        Doing.RUNNING: f"a worker is at it; its lease ends in {length} unless it is renewed",
        Doing.WAITING: f"waits for {length}; `eni-tasks maintain` ends the wait",
        Doing.OVERDUE: "nobody came in time; it is sent again at once if a watcher runs",
    }[standing.doing]
