"""What to do next for one node, and why: every decision is made here.

One step at a time: the service that carries out the action records what EC2 answered and asks again. Gates
come first (facts that are unknown lead to nothing), then the need, then existing interfaces before
new ones. Nothing here knows how an action is carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain import capacity, creation, interface_refusals, placement, watermark
from eni_tasks.domain.blocked import Blocked, utc
from eni_tasks.domain.eligibility import eligible, occupying
from eni_tasks.domain.eni_entries import eni_entries, unlisted
from eni_tasks.domain.figures import cap, figures
from eni_tasks.domain.tags import matches
from eni_tasks.domain.words import counted
from eni_tasks.model.plan import Figures, Plan, Reason, SetDeleteOnTermination

if TYPE_CHECKING:
    from eni_tasks.model.network import Limits
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.plan import Action
    from eni_tasks.model.state import NodeState

# Gates that an operator has to open; the others open by themselves or are meant to be shut.
_TROUBLE = frozenset(
    {
        Reason.NO_INSTANCE_ID,
        Reason.INSTANCE_TAKEN,
        Reason.MULTI_POOL,
        Reason.NO_INTERFACES,
        Reason.LIMITS_UNKNOWN,
        Reason.FACTS_TOO_OLD,
    }
)


def plan(state: NodeState, policy: Policy, now: float) -> Plan:
    """Decide the next step for a node.

    Args:
        state: everything the decision may look at; its memory is the same node's and instance's.
        policy: what the operator decided for all nodes.
        now: the present, in the clock of `state.memory`.

    Returns:
        The next action or none, the reason, the sentences that lead there, and the figures.
    """
    known = figures(state, policy)
    gate = _gate(state)
    if isinstance(gate, Blocked):
        unread = gate.reason is Reason.NOT_READ and state.facts is not None and bool(state.facts.problem)
        return _answer(known, None, gate.reason, (gate.sentence,), blocked=unread or gate.reason in _TROUBLE)
    if known.needed == 0:
        return _outliving(state, policy, known, now) or _complete(state, policy, gate, known)
    return _serve(state, policy, gate, known, now)


def _gate(state: NodeState) -> Blocked | Limits:
    """Stop at what forbids acting and at facts that are missing; answers the limits when all are there."""
    if left_alone := _left_alone(state):
        return left_alone
    node = state.node
    instance = f"instance {node.instance_id} of {node.name}"
    if state.interfaces is None:
        problem = f" {state.facts.problem}" if state.facts else ""
        return Blocked(
            Reason.NOT_READ, f"The interfaces of {instance} have not been read well: they are read first.{problem}"
        )
    if not state.interfaces:
        return Blocked(
            Reason.NO_INTERFACES,
            f"EC2 shows no interface of {instance}: it is treated as not found. Check that the instance exists, and "
            "that region and account are right.",
        )
    if state.limits is None:
        return Blocked(
            Reason.LIMITS_UNKNOWN,
            f"The limits of {instance}, type {node.instance_type or '(unset)'}, are unknown: nothing is done until EC2 "
            "describes the type.",
        )
    return state.limits


def _too_old(state: NodeState, policy: Policy, now: float) -> Blocked | None:
    """Stop at facts that no read has confirmed for too long."""
    read_at = {
        f"The interfaces of instance {state.node.instance_id}": state.facts.described_at if state.facts else now,
        "The subnets": state.infrastructure.described_at,
    }
    what, oldest = min(read_at.items(), key=lambda item: item[1])
    if now - oldest <= policy.facts_max_age_seconds:
        return None
    failure = (state.facts.problem if state.facts else "") or state.read_failure
    fails = f" The last read failed: {failure.rstrip('.')}." if failure else ""
    return Blocked(
        Reason.FACTS_TOO_OLD,
        f"{what} were last read at {utc(oldest)}: nothing is changed until a read succeeds.{fails}",
    )


def _left_alone(state: NodeState) -> Blocked | None:
    node = state.node
    if node.ignored:
        return Blocked(Reason.IGNORED, f"{node.name} carries the annotation ipam.cilium.io/ignore: it is left alone.")
    if node.deleting:
        return Blocked(Reason.DELETING, f"{node.name} is being deleted: nothing is done for it.")
    if not node.instance_id:
        return Blocked(
            Reason.NO_INSTANCE_ID,
            f"{node.name} has no instance id: nothing is done until its agent writes spec.instance-id.",
        )
    if not state.owns_instance:
        return Blocked(
            Reason.INSTANCE_TAKEN,
            f"Instance {node.instance_id} belongs to {state.instance_owner}, which has named it for longer: nothing is "
            f"done for {node.name} until only one of the two names it.",
        )
    if node.multi_pool:
        return Blocked(
            Reason.MULTI_POOL,
            f"The agent of {node.name} asks for addresses in spec.ipam.pools.requested, as agents of Cilium 1.20 and "
            "later do, which is not read: its pool stays as it is. Run an agent of Cilium 1.19 or earlier there.",
        )
    return None


def _serve(state: NodeState, policy: Policy, limits: Limits, known: Figures, now: float) -> Plan:
    node = state.node
    at_least = f" and {node.min_allocate} in all" if node.min_allocate > 0 else ""
    need = (
        f"{_holds(node, known)}, wants {capacity.effective_pre_allocate(node, policy)} free{at_least}: "
        f"{known.needed} more are needed."
    )
    if too_old := _too_old(state, policy, now):
        return _answer(known, None, too_old.reason, (need, too_old.sentence), blocked=True)
    if state.memory.not_running_until > now:
        stopped = f"Instance {node.instance_id} was not running when last tried: it is tried again in a while."
        return _answer(known, None, Reason.NOT_RUNNING, (need, stopped), blocked=True)
    want = watermark.wanted(
        needed_count=known.needed,
        available=known.available,
        max_above_watermark=node.max_above_watermark,
        cap=cap(state, limits, known.available),
    )
    hidden = unlisted(state, eni_entries(state.obj, state))
    before = (need, hidden) if hidden else (need,)
    candidates = placement.candidates(state, policy, limits)
    assign, sentences = placement.place(candidates, want)
    if assign is not None:
        return _answer(known, assign, Reason.DEFICIT, (*before, *sentences))
    created = _no_slot(state, limits, now, any_room=bool(candidates)) or creation.create(
        state, policy, limits, _secondaries(state, limits, known, want)
    )
    if isinstance(created, Blocked) and hidden:
        # First of all the node lacks what it holds already.
        why = (need, *sentences, created.sentence, hidden)
        return _answer(known, None, Reason.SUBNET_NOT_LISTED, why, blocked=True)
    if isinstance(created, Blocked):
        return _answer(known, None, created.reason, (need, *sentences, created.sentence), blocked=True)
    action, sentence = created
    return _answer(known, action, Reason.DEFICIT, (*before, *sentences, sentence))


def _secondaries(state: NodeState, limits: Limits, known: Figures, want: int) -> int:
    # Where pods may get primaries, the new interface's own counts against the cap as well.
    primaries = 1 if state.node.use_primary_address else 0
    most = cap(state, limits, known.available)
    return watermark.capped(want + primaries, available=known.available, cap=most) - primaries


def _no_slot(state: NodeState, limits: Limits, now: float, *, any_room: bool) -> Blocked | None:
    node = state.node
    most = limits.max_interfaces
    if capacity.free_slots(limits, state.interfaces or ()) > 0:
        return _refused_interface(state, limits, now)
    all_attached = f"All interfaces that {node.name} can carry ({most}) are attached"
    if any_room:
        return Blocked(
            Reason.NO_SUBNET, f"{all_attached}, and the subnets of those with room are full: free addresses there."
        )
    return Blocked(
        Reason.AT_CAPACITY, f"{all_attached} and none has room: use a larger instance type, or run fewer pods there."
    )


def _refused_interface(state: NodeState, limits: Limits, now: float) -> Blocked | None:
    next_try_at = interface_refusals.next_try_at(state.memory, state.node)
    if next_try_at <= now:
        return None
    attached = len(occupying(state.interfaces or (), limits.network_card))
    return Blocked(
        Reason.INTERFACE_REFUSED,
        f"EC2 refused a further interface of {state.node.instance_id} at {utc(state.memory.interface_refused_at)} "
        f"({attached} are attached, its type allows {limits.max_interfaces}; volumes may take slots, too). The next "
        f"try is at {utc(next_try_at)}, or at once with `eni-tasks maintain {state.node.name}`.",
    )


def _outliving(state: NodeState, policy: Policy, known: Figures, now: float) -> Plan | None:
    """Find an interface of ours whose creation was interrupted before its last step, and whose journal was lost."""
    if not (state.node.delete_on_termination and policy.interface_tags) or _too_old(state, policy, now):
        return None
    for interface in eligible(state.interfaces or (), state.node):
        if not interface.delete_on_termination and matches(policy.interface_tags, interface.tags):
            action = SetDeleteOnTermination(interface_id=interface.id, attachment_id=interface.attachment_id)
            sentence = (
                f"{interface.id} is ours and would outlive {state.node.instance_id}: set its delete-on-termination."
            )
            return _answer(known, action, Reason.OUTLIVES_INSTANCE, (f"{_holds(state.node, known)}.", sentence))
    return None


def _complete(state: NodeState, policy: Policy, limits: Limits, known: Figures) -> Plan:
    node = state.node
    uncapped = watermark.needed(
        available=known.available,
        used=known.used,
        pre_allocate=capacity.effective_pre_allocate(node, policy),
        min_allocate=node.min_allocate,
        cap=None,
    )
    hidden = unlisted(state, eni_entries(state.obj, state))
    before = (hidden,) if hidden else ()
    if uncapped == 0:
        return _answer(known, None, Reason.AT_SIZE, (*before, f"{_holds(node, known)}: nothing is needed."))
    if hidden:
        why = (f"{_holds(node, known)}: with what can't be shown that is all it may hold.", hidden)
        return _answer(known, None, Reason.SUBNET_NOT_LISTED, why, blocked=True)
    if known.capacity == 0:
        return _answer(known, None, Reason.AT_CAPACITY, (_no_capacity(node, limits),), blocked=True)
    most = f"its max-allocate, {node.max_allocate}" if node.max_allocate else f"all it can carry, {known.capacity}"
    return _answer(known, None, Reason.AT_CAPACITY, (f"{_holds(node, known)}: that is {most}.",))


def _no_capacity(node: Node, limits: Limits) -> str:
    most = limits.max_interfaces
    if node.first_interface_index >= most:
        return (
            f"first-interface-index {node.first_interface_index} leaves none of the {most} interfaces of {node.name} "
            "to pods: lower it, or use a larger instance type."
        )
    if capacity.addresses_per_interface(limits, node) == 0:
        return f"The interfaces of {node.name} carry no address besides their own: use a larger instance type."
    return (
        f"All interfaces that {node.name} can carry ({most}) are attached and none may serve pods: detach or include "
        "some, or use a larger instance type."
    )


def _holds(node: Node, known: Figures) -> str:
    return f"{node.name} holds {counted(known.available, 'address')}, {known.used} used"


def _answer(
    known: Figures, action: Action | None, reason: Reason, explanation: tuple[str, ...], *, blocked: bool = False
) -> Plan:
    urgency = watermark.urgency(known)
    return Plan(action=action, reason=reason, explanation=explanation, figures=known, urgency=urgency, blocked=blocked)
