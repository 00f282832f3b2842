"""The status of the fleet and of single nodes, with the reasons: what people and the exporter see. Reads only.

Answers come from the shared state alone, so asking costs EC2 and the API server nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from eni_tasks.domain import blocks, capacity, lacking, subnets
from eni_tasks.domain.addresses import may_use, pod_addresses, secondary_count
from eni_tasks.domain.eligibility import eligible
from eni_tasks.domain.eni_entries import eni_entries, usable_pool
from eni_tasks.domain.planner import plan
from eni_tasks.domain.prefixes import SIZE, delegation
from eni_tasks.domain.status import next_write
from eni_tasks.errors import NodeGone
from eni_tasks.model.network import Interface, NodeName, Value
from eni_tasks.model.node import Node, Policy
from eni_tasks.model.plan import Plan, Reason, Unassign
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import WorkKind
from eni_tasks.services import journal
from eni_tasks.services.obstacles import obstacles
from eni_tasks.state import State
from eni_tasks.state.events import Event
from eni_tasks.state.nodes import NodeAnswer
from eni_tasks.state.summary import StateSummary, WorkState, WorkStatus

EVENTS_COUNT = 10
# Reasons beside the planner's: the object can't be understood, or does not show what is known.
NOT_UNDERSTOOD = "object-not-understood"
NOT_PUBLISHED = "not-published"


class NodeStatus(Value, frozen=True, omit_defaults=False):
    """One node's figures; `published` counts the addresses that its object shows.

    `ready` means that the pool is at size, that nothing is missing beside it (IPv6, static address), and that the
    object shows it: nothing is needed, or nothing more can be held. `capacity` and the two after it are as in
    `Figures`. `described_at` is the last good read of its interfaces. `work` is what its maintenance is doing or, if
    none is pending, its publishing.
    """

    node: NodeName
    instance: str = ""
    instance_type: str = ""
    interfaces: int = 0
    available: int = 0
    used: int = 0
    needed: int = 0
    excess: int = 0
    published: int = 0
    capacity: int | None = None
    remaining_interfaces: int = 0
    free_slots: int = 0
    described_at: float | None = None
    ready: bool = False
    reason: str = ""
    explanation: tuple[str, ...] = ()
    last_action: str = ""
    trouble: str = ""
    work: WorkStatus | None = None


class FleetStatus(Value, frozen=True):
    """The fleet. A node in deficit needs more. One at capacity holds all that it can, which may be enough or not.

    `reasons` counts the nodes that are not at size by the planner's constant word. `oldest_read_at` is None when
    no instance was read yet; `unread_count` nodes have an instance that never was. `creating` are the nodes with
    an interface that is being created.
    """

    summary: StateSummary
    nodes: tuple[NodeStatus, ...]
    total_count: int
    ready_count: int
    in_deficit_count: int
    at_capacity_count: int
    waiting_count: int
    reasons: dict[str, int]
    oldest_read_at: float | None
    unread_count: int
    creating: tuple[NodeName, ...]

    @property
    def trouble(self) -> bool:
        """Whether a person should look: no node is known, or not all pools are at size, EC2 stops us, or reads fail."""
        short = self.total_count == 0 or self.ready_count < self.total_count
        return short or bool(self.summary.breakers or self.summary.read_failure)


class ItemState(StrEnum):
    """What became of something that an interface holds."""

    USED = "used"  # by a pod, as the object says
    FREE = "free"
    NOT_SHOWN = "not shown"  # EC2 has assigned it, and the object does not show it yet
    NOT_FOR_PODS = "not for pods"  # pods can't get it


class Item(Value, frozen=True):
    """Something that an interface holds for pods, such as an address."""

    label: str
    state: ItemState


class InterfaceStatus(Value, frozen=True, omit_defaults=False):
    """One interface of a node.

    `addresses` are single ones, `prefixes` /28 blocks; `address_count` counts both. `used` of them are in use by pods,
    as the node's object says; of an agent of Cilium 1.20, which does not say, as many as it lists.
    `items` are what it holds for pods, each with its state. `room` addresses still fit on it, whatever its subnet has:
    None while unknown, and for an interface that gets no addresses. `subnet_room` is what this node can get from
    the subnet now: nothing while the subnet cools down because it reported that it is full.
    """

    id: str
    device_index: int
    subnet: str
    primary_address: str
    status: str
    used: int
    addresses: tuple[str, ...]
    prefixes: tuple[str, ...]
    address_count: int
    items: tuple[Item, ...] = ()
    room: int | None = None
    subnet_room: int = 0
    subnet_cooling_down: bool = False


class NodeDetails(Value, frozen=True):
    """One node in detail. `journal` says how far the creation of an interface is ("" if none is under way).

    `facts_at` is when the last accepted read began, 0 if there was none. `facts_unknown` says why the facts count
    as unknown. `events` are the node's last events.
    """

    now: float
    status: NodeStatus
    work: dict[WorkKind, WorkStatus]
    interfaces: tuple[InterfaceStatus, ...]
    facts_at: float
    facts_unknown: str
    failures: int
    journal: str
    events: tuple[Event, ...]


class NodePlan(Value, frozen=True):
    """What would be done next for a node, and what stands in the way.

    `creating` says that an interface creation is under way, which the next run continues first. `work` is the node's
    pending work. `obstacles` are sentences: what stands in the way beside the reasons of the plan.
    """

    now: float
    plan: Plan
    creating: bool
    work: dict[WorkKind, WorkStatus]
    obstacles: tuple[str, ...]

    @property
    def trouble(self) -> bool:
        """Whether something stands in the way."""
        return bool(self.plan.trouble or self.obstacles)


class Status:
    """Answers questions about nodes.

    Args:
        state: the shared state.
        policy: what the settings decide for all nodes.
    """

    def __init__(self, state: State, policy: Policy) -> None:
        self._state = state
        self._policy = policy

    def nodes(self) -> Iterable[NodeStatus]:
        """The figures of every known node, by name."""
        for name, state in self._state.nodes.read_many(sorted(self._state.nodes.names())):
            if not isinstance(state, NodeGone):  # deleted since the names were read
                yield self._node_status(name, state)

    def fleet(self, queues: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> FleetStatus:
        """The status of the whole fleet.

        Args:
            queues: names of the Celery queues.
            progress: called with the number of nodes read so far.
        """
        found: list[NodeStatus] = []
        for status in self.nodes():
            found.append(status)
            progress(len(found))
        summary = self._state.summary
        work = {**summary.work_of_kind(WorkKind.PUBLISH), **summary.work_of_kind(WorkKind.MAINTAIN)}
        nodes = tuple(msgspec.structs.replace(status, work=work.get(status.node)) for status in found)
        read_at = [status.described_at for status in nodes if status.described_at is not None]
        short = [status for status in nodes if not status.ready]
        reasons: dict[str, int] = {}
        for status in short:
            reasons[status.reason] = reasons.get(status.reason, 0) + 1
        return FleetStatus(
            summary=summary.read(queues),
            nodes=nodes,
            total_count=len(nodes),
            ready_count=len(nodes) - len(short),
            in_deficit_count=sum(status.needed > 0 for status in short),
            at_capacity_count=sum(status.reason == Reason.AT_CAPACITY.value for status in nodes),
            waiting_count=sum(status.work is not None and status.work.state is WorkState.WAITING for status in nodes),
            reasons=reasons,
            oldest_read_at=min(read_at, default=None),
            unread_count=sum(bool(status.instance) for status in nodes) - len(read_at),
            creating=tuple(sorted(self._state.nodes.journals())),
        )

    def node(self, name: NodeName) -> NodeDetails:
        """One node in detail; an object that can't be understood is reported, not hidden.

        Raises:
            NodeGone: no such node is known.
        """
        ((_, answer),) = self._state.nodes.read_many([name])
        if isinstance(answer, NodeGone):
            raise answer
        state = answer if isinstance(answer, NodeState) else None
        facts = state.facts if state else None
        entry = self._state.nodes.journal(name)
        return NodeDetails(
            now=self._state.now(),
            status=self._node_status(name, answer),
            work=dict(self._state.summary.work_of_node(name)),
            interfaces=self._interfaces(state) if state else (),
            facts_at=facts.described_at if facts else 0.0,
            facts_unknown=_why_unknown(state) if state else "",
            failures=state.memory.failures if state else 0,
            journal=journal.explain(entry) if entry else "",
            events=tuple(self._state.events.latest(name, EVENTS_COUNT)),
        )

    def plan(self, name: NodeName) -> NodePlan:
        """What would be done next for a node, why, and what stands in the way; nothing is done.

        Raises:
            NodeGone: no such node is known.
            InvalidInput: its object can't be understood.
        """
        state = self._state.nodes.read(name)
        decision = plan(state, self._policy, state.now)
        summary, work = self._state.summary.read(()), self._state.summary.work_of_node(name)
        overdue_seconds = self._state.queue.overdue_ms / 1000
        return NodePlan(
            now=summary.now,
            plan=decision,
            creating=state.journal is not None,
            work=dict(work),
            obstacles=obstacles(state, decision, summary, work, overdue_seconds=overdue_seconds),
        )

    def _node_status(self, name: NodeName, state: NodeAnswer) -> NodeStatus:
        if not isinstance(state, NodeState):
            return NodeStatus(node=name, reason=NOT_UNDERSTOOD, explanation=(str(state),), trouble=str(state))
        decision = plan(state, self._policy, state.now)
        node, figures = state.node, decision.figures
        complete = _complete(state, decision)
        shown = complete and next_write(state.obj, state, self._policy) is None
        reason, explanation = decision.reason.value, (*decision.explanation, *decision.troubles)
        lost = lacking.explain(state.facts, node) if state.facts is not None else ""
        explanation = (*(said for said in (lost, blocks.explain(state)) if said), *explanation)
        if complete and not shown:
            reason, explanation = NOT_PUBLISHED, (*explanation, _why_not_shown(state))
        return NodeStatus(
            node=name,
            instance=node.instance_id,
            instance_type=node.instance_type,
            interfaces=figures.interfaces,
            available=figures.available,
            used=figures.used,
            needed=figures.needed,
            excess=figures.excess,
            published=len(node.pool),
            capacity=figures.capacity,
            remaining_interfaces=figures.remaining_interfaces,
            free_slots=figures.free_slots,
            described_at=(state.facts.described_at or None) if state.facts else None,
            ready=shown,
            reason=reason,
            explanation=explanation,
            last_action=state.memory.last_action,
            trouble=state.memory.trouble or state.publish_failure,
        )

    def _interfaces(self, state: NodeState) -> tuple[InterfaceStatus, ...]:
        known = state.facts.interfaces if state.facts else ()
        # While the facts count as unknown, pods get what the object shows.
        unknown = state.interfaces is None
        usable = state.node.pool if unknown else usable_pool(state, eni_entries(state.obj, state))
        served = set() if unknown else {interface.id for interface in eligible(known, state.node)}
        found = [
            InterfaceStatus(
                id=each.id,
                device_index=-1 if each.device_index is None else each.device_index,
                subnet=each.subnet_id,
                primary_address=each.primary_address,
                status=each.attachment_status or each.status,
                used=len(may_use(state.node, pod_addresses(each, state.node))),
                addresses=each.addresses,
                prefixes=each.prefixes,
                address_count=secondary_count(each),
                items=_items(each, state.node, usable),
                room=self._room(each, state) if each.id in served else None,
                subnet_room=subnets.room(each.subnet_id, state, self._policy),
                subnet_cooling_down=each.subnet_id in state.cooling_down,
            )
            for each in known
        ]
        return tuple(sorted(found, key=lambda each: each.device_index))

    def _room(self, interface: Interface, state: NodeState) -> int | None:
        if state.limits is None:
            return None
        takes_prefixes = delegation(state, self._policy).takes_prefixes(interface)
        return capacity.room(interface, state.limits) * (SIZE if takes_prefixes else 1)


def _items(interface: Interface, node: Node, usable: Mapping[str, str]) -> tuple[Item, ...]:
    held = pod_addresses(interface, node)
    in_use = may_use(node, held)

    def state_of(address: str) -> ItemState:
        if address in in_use:
            return ItemState.USED
        if usable.get(address) != interface.id:
            return ItemState.NOT_FOR_PODS
        return ItemState.FREE if node.pool.get(address) == interface.id else ItemState.NOT_SHOWN

    return tuple(Item(label=address, state=state_of(address)) for address in held)


def _complete(state: NodeState, decision: Plan) -> bool:
    """Facts known, nothing to do but to give back what is in excess, nothing needed, nothing blocked."""
    known = state.interfaces is not None and state.journal is None
    at_rest = decision.action is None or isinstance(decision.action, Unassign)
    return known and at_rest and decision.figures.needed == 0 and not decision.trouble


def _why_not_shown(state: NodeState) -> str:
    failure = f": {state.publish_failure}" if state.publish_failure else "; it is written with the next run"
    return f"The object of {state.node.name} does not show this yet{failure}."


def _why_unknown(state: NodeState) -> str:
    facts = state.facts
    if facts is None:
        return "the instance was not read yet"
    if facts.problem:
        return facts.problem
    if facts.outdated:
        return "Redis was restarted, failed over or emptied since the instance was read; it is read again"
    if facts.mutation_pending:
        return "a mutation is pending, or its outcome is unknown"
    if facts.unconfirmed_since:
        return "a read lacks what was known before; it is read again"
    return ""
