"""What to do next for one node, and why: every decision is made here.

One step at a time: the service that carries out the action records what EC2 answered and asks again. Gates
come first (facts that are unknown lead to nothing), then the need, then existing interfaces before
new ones. Only a node that needs nothing releases anything. Nothing here knows how an action is carried out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from eni_tasks.domain import beside_pool, capacity, creation, given_up, placement, prefixes, release, watermark
from eni_tasks.domain.eligibility import eligible, occupying
from eni_tasks.domain.eni_entries import eni_entries, unlisted
from eni_tasks.domain.figures import cap, figures
from eni_tasks.domain.words import counted
from eni_tasks.model.network import matches
from eni_tasks.model.plan import Blocked, CreateInterface, Figures, Plan, Reason, SetDeleteOnTermination, Urgency, utc

if TYPE_CHECKING:
    from eni_tasks.model.network import Limits
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.plan import Action, Assign
    from eni_tasks.model.state import NodeState

# Gates that an operator has to open; the others open by themselves or are meant to be shut.
_TROUBLE = frozenset(
    {
        Reason.NO_INSTANCE_ID,
        Reason.INSTANCE_TAKEN,
        Reason.NO_INTERFACES,
        Reason.LIMITS_UNKNOWN,
        Reason.FACTS_TOO_OLD,
    }
)

_NO_PREFIX = "No /28 prefix can be had now: single addresses instead, and prefixes again later."


def plan(state: NodeState, policy: Policy, now: float) -> Plan:
    """Decide the next step for a node.

    Args:
        state: everything the decision may look at; its memory is the same node's and instance's.
        policy: what the operator decided for all nodes.
        now: the present, in the clock of `state.memory`.

    Returns:
        The next action or none, the reason, the sentences that lead there, and the figures.
    """
    entries = eni_entries(state.obj, state)
    known = figures(state, policy, entries)
    gate = _gate(state)
    if isinstance(gate, Blocked):
        unread = gate.reason is Reason.NOT_READ and state.facts is not None and bool(state.facts.problem)
        return _answer(known, None, gate.reason, (gate.sentence,), blocked=unread or gate.reason in _TROUBLE)
    hidden = unlisted(state, entries)
    if known.needed == 0:
        pool = _outliving(state, policy, known, now) or _complete(state, policy, gate, known, hidden, now)
    else:
        pool = _releasing_nothing(state, policy, now, _serve(state, policy, gate, known, hidden, now))
    return _with_what_is_beside(pool, state, policy, gate, now)


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
    return None


def _serve(  # noqa: PLR0913 - what the gates let through
    state: NodeState, policy: Policy, limits: Limits, known: Figures, hidden: str, now: float
) -> Plan:
    node = state.node
    at_least = f" and {node.min_allocate} in all" if node.min_allocate > 0 else ""
    need = (
        f"{_holds(node, known)}, wants {watermark.pre_allocate(node, policy.pre_allocate_default)} free{at_least}: "
        f"{known.needed} more are needed."
    )
    if too_old := _too_old(state, policy, now):
        return _answer(known, None, too_old.reason, (need, too_old.sentence), blocked=True)
    if state.memory.not_running_until > now:
        stopped = f"Instance {node.instance_id} was not running when last tried: it is tried again in a while."
        return _answer(known, None, Reason.NOT_RUNNING, (need, stopped), blocked=True)
    want = _want(state, policy, limits, known)
    if state.pending_pods > known.needed:
        need = f"{need} {state.pending_pods} pods wait there."
    before = (need, hidden) if hidden else (need,)
    step, sentences = _next_step(state, policy, limits, known, want, now)
    if isinstance(step, Blocked) and hidden:
        # First of all the node lacks what it holds already.
        why = (need, *sentences, hidden)
        return _answer(known, None, Reason.SUBNET_NOT_LISTED, why, blocked=True)
    if isinstance(step, Blocked):
        return _answer(known, None, step.reason, (need, *sentences), blocked=True)
    return _answer(known, step, Reason.DEFICIT, (*before, *sentences))


def _next_step(  # noqa: PLR0913 - what the gates let through
    state: NodeState, policy: Policy, limits: Limits, known: Figures, want: int, now: float
) -> tuple[Assign | CreateInterface | Blocked, tuple[str, ...]]:
    """Decide where the next addresses come from, and explain it.

    From the attached interfaces, else from a new one; with prefix delegation from prefixes of both first, then from
    single addresses of both.
    """
    candidates = placement.candidates(state, policy, limits)
    prefix_count = _prefix_count(state, policy, limits, known, want)
    assign, sentences = placement.place(candidates, want, prefix_count)
    if assign is not None:
        return assign, sentences
    no_slot = _no_slot(state, limits, now, any_room=bool(candidates))
    created = no_slot or _create(state, policy, limits, known, want)
    if prefix_count and (isinstance(created, Blocked) or not created[0].prefix_count):
        assign, singles = placement.place(candidates, want)
        sentences = (*sentences, _NO_PREFIX, *singles)
        if assign is not None:
            return assign, sentences
    if isinstance(created, Blocked):
        return created, (*sentences, created.sentence)
    return created[0], (*sentences, created[1])


def _with_what_is_beside(pool: Plan, state: NodeState, policy: Policy, limits: Limits, now: float) -> Plan:
    """Put the steps for IPv6 and the static address before that of the pool."""
    if state.memory.not_running_until > now:
        return pool
    beside = beside_pool.step(state, policy, limits, now)
    pool = msgspec.structs.replace(pool, troubles=beside.troubles)
    if beside.active and (too_old := _too_old(state, policy, now)):
        return _answer(pool.figures, None, too_old.reason, (*pool.explanation, too_old.sentence), blocked=True)
    if beside.action is not None:
        return _first(pool, beside.action, beside.reason, beside.sentence)
    if beside.interface_for_ipv6 and (pool.action is None or isinstance(pool.action, CreateInterface)):
        return _with_ipv6_interface(pool, state, policy, limits, now)
    return pool


def _with_ipv6_interface(pool: Plan, state: NodeState, policy: Policy, limits: Limits, now: float) -> Plan:
    """Create an interface that gets the IPv6 prefix, and what the pool wants of a new interface."""
    node, known = state.node, pool.figures
    want = 0 if pool.action is None else _want(state, policy, limits, known)
    all_attached = f"All {limits.max_interfaces} interfaces that {node.name} can carry are attached."
    created = (
        Blocked(Reason.AT_CAPACITY, all_attached)
        if capacity.free_slots(limits, state.interfaces or ()) <= 0
        else _refused_interface(state, limits, now) or _create(state, policy, limits, known, want, ipv6_prefix=True)
    )
    if not isinstance(created, Blocked) and (pool.action is not None or _fits(state, policy, limits, known) >= 0):
        return _first(pool, created[0], Reason.IPV6, f"The agent of {node.name} asks for IPv6 addresses. {created[1]}")
    why = created.sentence if isinstance(created, Blocked) else f"Its max-allocate is {node.max_allocate}."
    sentence = (
        f"The agent of {node.name} asks for IPv6 addresses: no attached interface that may serve pods has a free IPv6 "
        f"slot in a subnet with IPv6, and none can be created in such a subnet. {why}"
    )
    return msgspec.structs.replace(pool, troubles=(*pool.troubles, sentence))


def _first(pool: Plan, action: Action, reason: Reason, sentence: str) -> Plan:
    """Take a step before that of the pool."""
    return msgspec.structs.replace(
        pool,
        action=action,
        reason=reason,
        explanation=(*(pool.explanation if pool.blocked else pool.explanation[:1]), sentence),
        urgency=min(pool.urgency, Urgency.DEFICIT),
        blocked=False,
    )


def _want(state: NodeState, policy: Policy, limits: Limits, known: Figures) -> int:
    return watermark.wanted(
        needed_count=known.needed,
        available=known.available,
        max_above_watermark=state.node.max_above_watermark,
        cap=cap(state, policy, limits, known.available),
        pending_pods=state.pending_pods,
    )


def _fits(state: NodeState, policy: Policy, limits: Limits, known: Figures) -> int:
    """Count what a new interface may hold besides its primary; one that pods may get counts against the cap, too."""
    primaries = 1 if state.node.use_primary_address else 0
    return max(0, cap(state, policy, limits, known.available) - known.available) - primaries


def _prefix_count(  # noqa: PLR0913 - what the gates let through
    state: NodeState, policy: Policy, limits: Limits, known: Figures, want: int, fits: int | None = None
) -> int:
    if not prefixes.delegates(state.node, limits, policy):
        return 0
    if fits is None:
        fits = cap(state, policy, limits, known.available) - known.available
    return prefixes.count(want, fits)


def _create(  # noqa: PLR0913 - what the gates let through
    state: NodeState, policy: Policy, limits: Limits, known: Figures, want: int, *, ipv6_prefix: bool = False
) -> tuple[CreateInterface, str] | Blocked:
    """Decide the interface to create: with prefixes if a subnet has them, else with single addresses."""
    fits = _fits(state, policy, limits, known)
    create = partial(creation.create, state, policy, limits, ipv6_prefix=ipv6_prefix)
    if prefix_count := _prefix_count(state, policy, limits, known, want, fits):
        created = create(want, prefix_count=prefix_count)
        if not isinstance(created, Blocked):
            return created
    return create(max(0, min(want, fits)))


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
    next_try_at = creation.next_try_at(state.memory, state.node)
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


def _complete(  # noqa: PLR0913 - what the run has found out so far
    state: NodeState, policy: Policy, limits: Limits, known: Figures, hidden: str, now: float
) -> Plan:
    node = state.node
    uncapped = watermark.needed(
        available=known.available,
        used=known.used,
        pre_allocate=watermark.pre_allocate(node, policy.pre_allocate_default),
        min_allocate=node.min_allocate,
        cap=None,
    )
    before = (hidden,) if hidden else ()
    if uncapped == 0:
        return _release(state, policy, known, now, (*before, f"{_holds(node, known)}: nothing is needed."))
    return _releasing_nothing(state, policy, now, _at_capacity(state, limits, known, hidden))


def _release(state: NodeState, policy: Policy, known: Figures, now: float, before: tuple[str, ...]) -> Plan:
    """Look at what is in excess, unless the facts may be wrong about it."""
    at_size = _answer(known, None, Reason.AT_SIZE, before)
    if _may_be_wrong(state, policy, now):
        return at_size
    if state.node.demand is not None:
        found = given_up.look(state, policy, known.excess, now)
    else:
        found = release.look(state, policy, known, now)
    return msgspec.structs.replace(
        at_size,
        action=found.action,
        reason=Reason.EXCESS if found.action else Reason.AT_SIZE,
        explanation=(*before, *found.explanation),
        release=found.memory,
    )


def _at_capacity(state: NodeState, limits: Limits, known: Figures, hidden: str) -> Plan:
    node = state.node
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


def _releasing_nothing(state: NodeState, policy: Policy, now: float, decided: Plan) -> Plan:
    """Forget what was to be released; what an agent of Cilium 1.20 has given up is known for longer."""
    memory = release.NO_RELEASE
    if state.node.demand is not None:
        if _may_be_wrong(state, policy, now):
            return decided
        memory = given_up.look(state, policy, 0, now).memory
    return msgspec.structs.replace(decided, release=memory)


def _may_be_wrong(state: NodeState, policy: Policy, now: float) -> bool:
    """Whether the facts may be wrong about what could be released."""
    return bool(state.facts and state.facts.lacking) or _too_old(state, policy, now) is not None


def _answer(
    known: Figures, action: Action | None, reason: Reason, explanation: tuple[str, ...], *, blocked: bool = False
) -> Plan:
    urgency = watermark.urgency(known)
    return Plan(action=action, reason=reason, explanation=explanation, figures=known, urgency=urgency, blocked=blocked)
