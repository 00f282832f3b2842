"""How single nodes stand in the work and in the facts, for people. All times are Redis seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from eni_tasks.model.network import InstanceId, NodeName, Value
from eni_tasks.ports.work import WorkKind


class Doing(StrEnum):
    """What becomes of a node's work right now."""

    QUEUED = "queued"  # a message is on its way
    RUNNING = "running"  # a live claim holds it
    WAITING = "waiting"  # until a back-off or a wait for a budget is over
    OVERDUE = "overdue"  # nobody came in time; the sweep sends it again


class Standing(Value, frozen=True):
    """The work of one node; `until` is the end of the lease, of the wait, or of the patience with the message."""

    doing: Doing
    until: float = 0.0


class Standings(Protocol):
    """Looking, and changing nothing; raises StateUnavailable."""

    def pending(self, kind: WorkKind) -> Mapping[NodeName, Standing]:
        """Everything of a kind that is queued, running or waiting."""
        ...

    def of(self, name: NodeName) -> Mapping[WorkKind, Standing]:
        """One node's work; a kind that has nothing to do is missing."""
        ...

    def described_at(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, float]:
        """When the last accepted read of each instance began; one that was never read is missing."""
        ...
