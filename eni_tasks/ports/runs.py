"""How a run begins and ends, each in one round trip: the work of a node and its world together."""

from __future__ import annotations

from typing import Protocol

from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.ports.state import World
from eni_tasks.ports.work import Claim, Finished, WorkKind


class Ended(Value, frozen=True):
    """The end of a run: what became of the work, and whether a message for its publishing must be sent."""

    finished: Finished
    publish: bool = False


class Runs(Protocol):
    """Raises StateUnavailable when Redis does not answer."""

    def begin(self, kind: WorkKind, name: NodeName) -> tuple[Claim, World] | None:
        """Take a node and read its world; None while a live claim holds it."""
        ...

    def end(
        self,
        claim: Claim,
        *,
        memory: Memory | None = None,
        publish: Urgency | None = None,
        again_after_seconds: float | None = None,
    ) -> Ended:
        """Give a node back.

        Args:
            claim: what `begin` gave.
            memory: what the run learned, if there is news; written only while the claim is live.
            publish: mark the node for publishing, with this urgency.
            again_after_seconds: see `Work.finish`.
        """
        ...
