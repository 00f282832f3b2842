"""How the fleet stands, and how one node stands, with the reasons: what `eni-tasks status` shows. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, Interface, NodeName, Value
from eni_tasks.model.node import Node
from eni_tasks.model.plan import Reason
from eni_tasks.ports.lookout import Look, Lookout
from eni_tasks.ports.repair import History
from eni_tasks.ports.standing import Doing, Standing, Standings
from eni_tasks.ports.state import Event, Store
from eni_tasks.ports.work import WorkKind
from eni_tasks.services.gather import Gathered
from eni_tasks.services.inspect import Inspect, NodeView
from eni_tasks.services.unlocking import journal_in_words

HISTORY_COUNT = 10


class FleetNode(NodeView, frozen=True, omit_defaults=False):
    """A node, and what becomes of its work: of maintaining it if that is pending, else of publishing."""

    standing: Standing | None = None


class Fleet(Value, frozen=True):
    """The fleet. A node in deficit needs more; one at capacity holds all that it can, which may do or not.

    `reasons` counts the nodes that are not at size by the planner's constant word. `oldest_read_at` is
    None when no instance was read yet; `unread_count` nodes have an instance that never was. `making` are
    the nodes with an interface in the making.
    """

    look: Look
    nodes: tuple[FleetNode, ...]
    total_count: int
    ready_count: int
    in_deficit_count: int
    at_capacity_count: int
    waiting_count: int
    reasons: dict[str, int]
    oldest_read_at: float | None
    unread_count: int
    making: tuple[NodeName, ...]

    @property
    def trouble(self) -> bool:
        """Whether somebody should look: a pool is not at size, or an EC2 action is stopped for everybody."""
        return self.ready_count < self.total_count or bool(self.look.breakers)


class InterfaceView(Value, frozen=True):
    """One interface of a node: `used` of its `addresses` are in use by pods, as the node's object says."""

    id: str
    device_index: int
    subnet: str
    primary_address: str
    status: str
    used: int
    addresses: tuple[str, ...]


class NodeStatus(Value, frozen=True):
    """One node. `journal` says how far an interface in the making is ("" if none is); `history` are its last events.

    `facts_at` is when the last accepted read began, 0 if there was none; `facts_doubt` says why the
    facts count as unknown.
    """

    now: float
    view: NodeView
    work: dict[WorkKind, Standing]
    interfaces: tuple[InterfaceView, ...]
    facts_at: float
    facts_doubt: str
    failures: int
    journal: str
    history: tuple[Event, ...]


class Overview:
    """Joins what Redis tells about nodes, work and events."""

    def __init__(
        self, store: Store, inspect: Inspect, lookout: Lookout, standings: Standings, history: History
    ) -> None:
        self._store = store
        self._inspect = inspect
        self._lookout = lookout
        self._standings = standings
        self._history = history

    def fleet(self, queues: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Fleet:
        """Look at everything.

        Args:
            queues: names of the Celery queues.
            progress: told the number of nodes looked at so far.
        """
        views = []
        for view in self._inspect.fleet():
            views.append(view)
            progress(len(views))
        standings = {**self._standings.pending(WorkKind.PUBLISH), **self._standings.pending(WorkKind.MAINTAIN)}
        instances = [InstanceId(view.instance) for view in views if view.instance]
        read_at = self._standings.described_at(instances)
        short = [view for view in views if not view.ready]
        reasons: dict[str, int] = {}
        for view in short:
            reasons[view.reason] = reasons.get(view.reason, 0) + 1
        at_capacity = [view for view in views if view.reason == Reason.AT_CAPACITY.value]
        waiting = [view for view in views if view.node in standings and standings[view.node].doing is Doing.WAITING]
        return Fleet(
            look=self._lookout.look(queues),
            nodes=tuple(FleetNode(**msgspec.structs.asdict(view), standing=standings.get(view.node)) for view in views),
            total_count=len(views),
            ready_count=len(views) - len(short),
            in_deficit_count=sum(view.needed > 0 for view in short),
            at_capacity_count=len(at_capacity),
            waiting_count=len(waiting),
            reasons=reasons,
            oldest_read_at=min(read_at.values(), default=None),
            unread_count=len(instances) - len(read_at),
            making=tuple(sorted(self._store.journals())),
        )

    def node(self, name: NodeName) -> NodeStatus:
        """Look at one node.

        Raises:
            NodeGone: no such node is known.
        """
        view = self._inspect.node(name)
        gathered = self._gathered(name)
        facts = gathered.facts if gathered else None
        return NodeStatus(
            now=self._lookout.look(()).now,
            view=view,
            work=dict(self._standings.of(name)),
            interfaces=_interfaces(gathered) if gathered else (),
            facts_at=facts.described_at if facts else 0.0,
            facts_doubt=_doubt(gathered) if gathered else "",
            failures=gathered.snapshot.memory.failures if gathered else 0,
            journal=journal_in_words(gathered.journal) if gathered and gathered.journal else "",
            history=tuple(self._history.latest(name, HISTORY_COUNT)),
        )

    def _gathered(self, name: NodeName) -> Gathered | None:
        try:
            return self._inspect.plan(name)[0]
        except InvalidInput:
            return None  # the view says what is wrong with the object


def _doubt(gathered: Gathered) -> str:
    facts = gathered.facts
    if facts is None:
        return "the instance was not read yet"
    if facts.in_air:
        return "a mutation is under way, or its outcome is unknown"
    return "a read missed what was known before; it is read again" if facts.doubted_at else ""


def _interfaces(gathered: Gathered) -> tuple[InterfaceView, ...]:
    facts, node = gathered.facts, gathered.snapshot.node
    found = [_interface(each, node) for each in (facts.interfaces if facts else ())]
    return tuple(sorted(found, key=lambda each: each.device_index))


def _interface(interface: Interface, node: Node) -> InterfaceView:
    return InterfaceView(
        id=interface.id,
        device_index=-1 if interface.device_index is None else interface.device_index,
        subnet=interface.subnet_id,
        primary_address=interface.primary_address,
        status=interface.attachment_status or interface.status,
        used=len(node.used.intersection(interface.addresses)),
        addresses=interface.addresses,
    )
