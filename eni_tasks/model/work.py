"""Work: its kinds, the claim on a piece of it, and how a run ends."""

from __future__ import annotations

from enum import StrEnum

from eni_tasks.model.network import NodeName, Value


class WorkKind(StrEnum):
    """The kinds of work. Each has revisions, claims and a pending set of its own.

    MAINTAIN and PUBLISH are work on one node and are named by it. FLEET is work on all nodes and is
    named by a `Pass`.
    """

    MAINTAIN = "maintain"
    PUBLISH = "publish"
    FLEET = "fleet"


NODE_WORK = (WorkKind.MAINTAIN, WorkKind.PUBLISH)


class Pass(StrEnum):
    """The passes over the fleet. At most one worker makes a pass of each name at a time."""

    INVENTORY = "inventory"  # read everything that belongs to the known nodes
    INSTANCES = "instances"  # read the instances for which a read was requested
    ORPHANS = "orphans"  # delete interfaces that were left behind


class Claim(Value, frozen=True):
    """The right to work on one node, or to make one pass, until the lease ends.

    `fence` only grows over the life of the deployment. `revision` is the one that the claim saw. `wake` says
    that something came since the last claim that ends a wait: the object changed, or a person asked.
    """

    kind: WorkKind
    name: NodeName | Pass
    token: str
    fence: int
    revision: int
    wake: bool = False

    @property
    def node(self) -> NodeName:
        """The node of a claim on node work."""
        return NodeName(self.name)


class Finished(StrEnum):
    """What became of the work at the end of a run."""

    DONE = "done"  # nothing more is known: the entry is deleted
    SEND = "send"  # more work was enqueued meanwhile: send a message
    WAITING = "waiting"  # the work waits until its not-before time; then it is requeued
    STALE = "stale"  # the claim had ended before


class Pause(Value, frozen=True):
    """Who paused all mutations, why, and since when (Redis seconds)."""

    who: str
    why: str
    since: float
