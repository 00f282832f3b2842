"""Work and world together, each in one round trip: taking nodes in, beginning a run, ending it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.ports.state import World
from eni_tasks.ports.work import Claim, Finished, WorkKind


class Ended(Value, frozen=True):
    """The end of a run: what became of the work, and whether a message for its publishing must be sent."""

    finished: Finished
    publish: bool = False


class TakenIn(Value, frozen=True):
    """Nodes for which a message must be sent."""

    maintain: tuple[NodeName, ...] = ()
    publish: tuple[NodeName, ...] = ()


class Runs(Protocol):
    """Raises StateUnavailable when Redis does not answer."""

    def take_in(
        self,
        objects: Sequence[Mapping[str, Any]],
        *,
        reads: Sequence[NodeName] = (),
        maintain: Sequence[tuple[NodeName, Urgency]] = (),
        publish: Sequence[tuple[NodeName, Urgency]] = (),
        needy: Sequence[NodeName] = (),
    ) -> TakenIn:
        """Store objects, each only if it is newer than the stored one, with all that follows from them.

        What follows is written first: whoever dies in between, or reaches Redis no more, leaves an object
        that is still news to the next who sees it.

        Args:
            objects: trimmed CiliumNodes.
            reads: nodes whose instance is to be read.
            maintain: nodes that have something to do; news that ends a wait.
            publish: nodes whose object is to be written; likewise.
            needy: nodes that lack addresses.
        """
        ...

    def begin(self, kind: WorkKind, name: NodeName) -> tuple[Claim, World] | None:
        """Take a node and read its world; None while a live claim holds it."""
        ...

    def end(
        self,
        claim: Claim,
        *,
        memory: Memory | None = None,
        publish: Urgency | None = None,
        needy: bool | None = None,
        again_after_seconds: float | None = None,
    ) -> Ended:
        """Give a node back.

        Args:
            claim: what `begin` gave.
            memory: what the run learned, if there is news; written only while the claim is live.
            publish: mark the node for publishing, with this urgency.
            needy: whether it lacks addresses that it could have; None if that isn't known.
            again_after_seconds: see `Work.finish`.
        """
        ...
