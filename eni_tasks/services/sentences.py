"""What the state means, in words: the command line and the status page say the same of the same state.

Nothing is read here. Where a sentence names a command, it is the one that helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from eni_tasks.domain.words import counted
from eni_tasks.model.network import Value
from eni_tasks.model.plan import (
    Action,
    Assign,
    AssignIpv6Prefix,
    AssociateAddress,
    SetDeleteOnTermination,
    Unassign,
)
from eni_tasks.model.work import WorkKind
from eni_tasks.services.status import FleetStatus
from eni_tasks.state.events import Event
from eni_tasks.state.limiter import LIMITS
from eni_tasks.state.summary import StateSummary, WorkState, WorkStatus

NO_NODES = "No nodes are known: is a watcher running, and does it have the same ENI_TASKS_CLUSTER?"


class NoticeKind(StrEnum):
    """What a notice is about, in a word for people."""

    PAUSED = "paused"
    REFUSED = "refused"
    THROTTLED = "throttled"
    COOLING_DOWN = "cooling down"
    READS_FAIL = "reads fail"
    LEFT_BEHIND = "left behind"
    STATE_LOST = "state lost"


class Notice(Value, frozen=True):
    """A sentence on something that concerns all nodes."""

    kind: NoticeKind
    sentence: str


def duration(seconds: float) -> str:
    """A length of time, as short as a table needs it."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def sentence(text: str) -> str:
    """End a text with one full stop; what EC2 and other systems say may end with one already."""
    return f"{text.rstrip('. ')}."


def when(event: Event) -> str:
    """The second in which an event happened, by Redis' clock, in UTC."""
    milliseconds = int(event.id.partition("-")[0])
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def event_details(event: Event) -> str:
    """The fields of an event but its node."""
    return ", ".join(f"{key}={value}" for key, value in event.fields.items() if key != "node")


# -- all nodes ------------------------------------------------------------------------------------


def notices(summary: StateSummary) -> Iterator[Notice]:
    """Say what stops or endangers all nodes, the most pressing first."""
    if summary.pause is not None:
        yield Notice(
            kind=NoticeKind.PAUSED,
            sentence=f"PAUSED for {duration(summary.now - summary.pause.since)} by {summary.pause.who}: "
            f"{sentence(summary.pause.why)} `eni-tasks resume` lets mutations continue.",
        )
    if summary.generation is None:
        yield Notice(
            kind=NoticeKind.STATE_LOST,
            sentence="Redis is empty, and no watcher has noticed yet: is one running?",
        )
    for action, breaker in summary.breakers.items():
        why = sentence(breaker.why)
        wait_seconds = breaker.until - summary.now
        probed = f"in {duration(wait_seconds)}" if wait_seconds > 0 else "by the next caller"
        if action == LIMITS:
            said = f"{action} is refused: {why} Nodes of unknown instance types wait."
        else:
            said = f"{action} is stopped for all workers: {why} It is probed {probed}; `eni-tasks resume` tries it now."
        yield Notice(kind=NoticeKind.REFUSED, sentence=said)
    if summary.read_failure:
        yield Notice(
            kind=NoticeKind.READS_FAIL, sentence=f"The last read of EC2 failed: {sentence(summary.read_failure)}"
        )
    if summary.orphans_count:
        yield Notice(
            kind=NoticeKind.LEFT_BEHIND,
            sentence=f"Interfaces left behind: {summary.orphans_count}; `eni-tasks orphans --dry-run` lists them.",
        )


def slowdowns(summary: StateSummary) -> Iterator[Notice]:
    """Say what slows all nodes down: rates that EC2's throttling has lowered, subnets that cool down."""
    for action, bucket in summary.buckets.items():
        if bucket.size and bucket.share < 1 and bucket.throttled_at is not None:
            rate, full = bucket.refill_per_second * bucket.share, bucket.refill_per_second
            yield Notice(
                kind=NoticeKind.THROTTLED,
                sentence=f"EC2 throttled {action} {duration(summary.now - bucket.throttled_at)} ago: all workers "
                f"together call it {rate:.1f} instead of {full:g} times a second until the rate has grown back.",
            )
    for subnet in summary.subnets:
        if subnet.cooling_down_until is not None:
            yield Notice(
                kind=NoticeKind.COOLING_DOWN,
                sentence=f"{subnet.id} in {subnet.availability_zone} reported that it is full: no node chooses it for "
                f"{duration(subnet.cooling_down_until - summary.now)}.",
            )
        if subnet.no_prefix_until is not None:
            yield Notice(
                kind=NoticeKind.COOLING_DOWN,
                sentence=f"{subnet.id} in {subnet.availability_zone} reported that it has no free /28 prefix: none is "
                f"asked for there for {duration(subnet.no_prefix_until - summary.now)}.",
            )


def age(fleet: FleetStatus) -> str:
    """Say how old the facts are."""
    summary = fleet.summary
    if summary.infrastructure_at is None:
        return "EC2 was not read yet: no subnets are known."
    facts = f"Facts: subnets read {duration(summary.now - summary.infrastructure_at)} ago"
    if fleet.oldest_read_at is not None:
        facts += f", every instance within {duration(summary.now - fleet.oldest_read_at)}"
    return facts + (f"; {counted(fleet.unread_count, 'instance')} not read yet." if fleet.unread_count else ".")


# -- one node -------------------------------------------------------------------------------------


def work_text(work: WorkStatus, now: float) -> str:
    """The state of a piece of work, and how long a wait still lasts."""
    if work.state is WorkState.WAITING:
        return f"waits {duration(work.until - now)}"
    return work.state.value


def work_lines(work: Mapping[WorkKind, WorkStatus], now: float) -> list[str]:
    """What each kind of a node's pending work is doing."""
    return [f"{kind.value}: {_until(each, now)}." for kind, each in work.items()]


def action_text(action: Action | None) -> str:  # noqa: PLR0911 - one for each action
    """What an action does, to what."""
    if action is None:
        return "nothing"
    if isinstance(action, Assign):
        what = _given_text(action.count, action.prefix_count)
        return f"assign {what} to {action.interface_id} in {action.subnet_id}"
    if isinstance(action, SetDeleteOnTermination):
        return f"have {action.interface_id} deleted together with its instance"
    if isinstance(action, Unassign):
        names = ", ".join((*action.prefixes, *action.addresses))
        return f"unassign {names} from {action.interface_id} in {action.subnet_id}"
    if isinstance(action, AssignIpv6Prefix):
        return f"assign an IPv6 prefix to {action.interface_id}"
    if isinstance(action, AssociateAddress):
        return f"associate an Elastic IP with {action.primary_address} of {action.interface_id}"
    groups = ", ".join(action.security_groups)
    what = _given_text(action.secondary_count, action.prefix_count)
    prefix = ", an IPv6 prefix" if action.ipv6_prefix else ""
    return (
        f"create an interface in {action.subnet_id} with {what}{prefix} and groups "
        f"{groups}, attach it to {action.instance_id} at device {action.device_index}"
    )


def _given_text(count: int, prefix_count: int) -> str:
    return counted(prefix_count, "/28 prefix") if prefix_count else counted(count, "address")


def _until(work: WorkStatus, now: float) -> str:
    length = duration(work.until - now)
    return {
        WorkState.QUEUED: f"a message was sent; if no worker takes it, another is sent in {length}",
        WorkState.RUNNING: f"a worker has claimed it; its lease ends in {length} unless it is renewed",
        WorkState.WAITING: f"waits for {length}; `eni-tasks maintain` ends the wait",
        WorkState.OVERDUE: "no worker took it in time; it is requeued at once if a watcher runs",
    }[work.state]
