"""What people ask: how the fleet stands, how one node stands, what would be done next. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from eni_tasks.domain.planner import plan
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node import Policy
from eni_tasks.model.plan import Figures, Plan
from eni_tasks.ports.state import Store, World
from eni_tasks.services.gather import Gathered, gather, understood

NOT_UNDERSTOOD = "object-not-understood"


class NodeView(Value, frozen=True, omit_defaults=False):
    """One node as people see it; `published` counts the addresses that its object shows.

    `ready` means that the pool is at size: nothing is needed, or nothing more can be held. `capacity` and
    what follows it are as in `Figures`; `described_at` is the last good read of its interfaces.
    """

    node: NodeName
    instance: str = ""
    instance_type: str = ""
    interfaces: int = 0
    available: int = 0
    used: int = 0
    needed: int = 0
    published: int = 0
    capacity: int = 0
    remaining_interfaces: int = 0
    free_slots: int = 0
    described_at: float | None = None
    ready: bool = False
    reason: str = ""
    explanation: tuple[str, ...] = ()
    last_action: str = ""
    trouble: str = ""


class Inspect:
    """Answers from the shared state alone, so that asking costs EC2 and the API server nothing."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    def fleet(self) -> Iterable[NodeView]:
        """Every known node, by name."""
        names = sorted(self._store.names())
        for name, world in zip(names, self._store.gather_all(names), strict=True):
            if world.obj is not None:  # deleted since the names were read
                yield self._view(name, world)

    def node(self, name: NodeName) -> NodeView:
        """One node; an object that can't be understood is told, not hidden.

        Raises:
            NodeGone: no such node is known.
        """
        return self._view(name, self._store.gather(name))

    def _view(self, name: NodeName, world: World) -> NodeView:
        try:
            gathered = understood(name, world)
        except InvalidInput as error:
            return NodeView(node=name, reason=NOT_UNDERSTOOD, explanation=(str(error),), trouble=str(error))
        decision = plan(gathered.snapshot, self._policy, gathered.now)
        node, figures, memory = gathered.snapshot.node, decision.figures, gathered.snapshot.memory
        return NodeView(
            node=name,
            instance=node.instance_id,
            instance_type=node.instance_type,
            interfaces=figures.interfaces,
            available=figures.available,
            used=figures.used,
            needed=figures.needed,
            published=len(node.pool),
            capacity=figures.capacity,
            remaining_interfaces=figures.remaining_interfaces,
            free_slots=figures.free_slots,
            described_at=(gathered.facts.described_at or None) if gathered.facts else None,
            ready=_ready(gathered, figures, decision),
            reason=decision.reason.value,
            explanation=decision.explanation,
            last_action=memory.last_action,
            trouble=memory.trouble,
        )

    def plan(self, name: NodeName) -> tuple[Gathered, Plan]:
        """What would be done next for a node, and why; nothing is done.

        Raises:
            NodeGone: no such node is known.
            InvalidInput: its object can't be understood.
        """
        gathered = gather(self._store, name)
        return gathered, plan(gathered.snapshot, self._policy, gathered.now)


def _ready(gathered: Gathered, figures: Figures, decision: Plan) -> bool:
    """Facts known, nothing to do, nothing blocked, and the object shows all of it."""
    known = gathered.snapshot.interfaces is not None and gathered.journal is None
    shown = len(gathered.snapshot.node.pool) == figures.available
    return known and shown and decision.action is None and figures.needed == 0 and not decision.blocked
