"""What stands in the way of a node's next step, beside the reasons of its plan.

That is the pause, a breaker, an empty token bucket, or the state of the node's own work. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eni_tasks.errors import InvalidInput
from eni_tasks.model.plan import (
    Action,
    Assign,
    AssignIpv6Prefix,
    AssociateAddress,
    CreateInterface,
    Plan,
    Reason,
    SetDeleteOnTermination,
    Unassign,
    Urgency,
)
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import WorkKind
from eni_tasks.services import journal
from eni_tasks.services.journal import CreationStep
from eni_tasks.state.limiter import LIMITS
from eni_tasks.state.summary import StateSummary, WorkState, WorkStatus

_CREATE, _ATTACH, _MODIFY = "CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute"
_CALLS: dict[type[Action], tuple[str, ...]] = {
    Assign: ("AssignPrivateIpAddresses",),
    CreateInterface: (_CREATE, _ATTACH, _MODIFY),
    SetDeleteOnTermination: (_MODIFY,),
    Unassign: ("UnassignPrivateIpAddresses",),
    AssignIpv6Prefix: ("AssignIpv6Addresses",),
    AssociateAddress: ("AssociateAddress",),
}
_CALLS_AFTER = {
    CreationStep.INTENT: (_CREATE, _ATTACH, _MODIFY),
    CreationStep.CREATED: (_ATTACH, _MODIFY),
    CreationStep.ATTACHING: (_ATTACH, _MODIFY),
    CreationStep.ATTACHED: (_MODIFY,),
    CreationStep.UNDO: ("DeleteNetworkInterface",),
}


def obstacles(
    state: NodeState,
    plan: Plan,
    summary: StateSummary,
    work: Mapping[WorkKind, WorkStatus],
    *,
    overdue_seconds: float,
) -> tuple[str, ...]:
    """Say what stands in the way of a node's next step.

    Args:
        state: what is known of the node.
        plan: what would be done next.
        summary: what holds for all nodes.
        work: the node's pending work.
        overdue_seconds: a message that no worker has taken by then is late.

    Returns:
        Sentences for people; none if the next run can take its step.
    """
    return (
        *_of_mutations(_next_calls(state, plan), plan, summary),
        *_of_journal(state),
        *_of_work(state, plan, summary.now, work, overdue_seconds),
    )


def _next_calls(state: NodeState, plan: Plan) -> tuple[str, ...]:
    """The mutations that the next run would make, an interface creation that is under way first."""
    calls: list[str] = []
    if state.journal is not None and journal.readable(state.journal):
        calls += _CALLS_AFTER[journal.decode(state.journal).step]
    if plan.action is not None:
        calls += _CALLS[type(plan.action)]
    return tuple(dict.fromkeys(calls))


def _of_mutations(calls: tuple[str, ...], plan: Plan, summary: StateSummary) -> Iterator[str]:
    if calls and summary.pause is not None:
        pause = summary.pause
        yield f"Mutations are paused by {pause.who}: {pause.why.rstrip('.')}. `eni-tasks resume` lets them continue."
    for call in (*calls, *([LIMITS] if plan.reason is Reason.LIMITS_UNKNOWN else [])):
        if call in summary.breakers:
            breaker = summary.breakers[call]
            seconds = breaker.until - summary.now
            when = f"in {seconds:.0f} s" if seconds > 0 else "by the next caller"
            why = breaker.why.rstrip(". ")
            yield f"{call} is stopped for all workers: {why}. It is probed {when}; `eni-tasks resume` tries it now."
    for call in calls:
        bucket = summary.buckets.get(call)
        seconds = bucket.wait_seconds(urgent=plan.urgency is Urgency.EMPTY) if bucket else 0.0
        if seconds:
            yield f"No token is left for {call}: the rate limit lets this node call it in {seconds:.0f} s or later."


def _of_journal(state: NodeState) -> Iterator[str]:
    if state.journal is None:
        return
    try:
        journal.decode(state.journal)
    except InvalidInput:
        name = state.node.name
        yield f"{journal.explain(state.journal)}. See `eni-tasks unlock {name} --delete-journal`."


def _of_work(
    state: NodeState, plan: Plan, now: float, work: Mapping[WorkKind, WorkStatus], overdue_seconds: float
) -> Iterator[str]:
    wanted = plan.action is not None or state.journal is not None or plan.figures.needed > 0
    for kind, status in work.items():
        if status.state is WorkState.WAITING and (wanted or kind is WorkKind.PUBLISH):
            seconds = status.until - now
            yield f"The {kind} work waits for {seconds:.0f} s more; `eni-tasks {kind} {state.node.name}` ends the wait."
        elif status.state is not WorkState.RUNNING and status.unserved_seconds > overdue_seconds:
            yield (
                f"The {kind} work has been due for {status.unserved_seconds:.0f} s, and no worker has begun it; "
                "`eni-tasks doctor` shows whether its workers answer."
            )
