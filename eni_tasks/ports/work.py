"""Work in flight and the right to mutate, as the use cases see them: mark, claim, spend.

All times are Redis' own; no caller's clock goes in. Every method raises StateUnavailable when Redis
does not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from eni_tasks.model.network import InstanceId, NodeName, SubnetId, Value
from eni_tasks.model.plan import Urgency


class WorkKind(StrEnum):
    """The kinds of work; each has its own generations, claims and queue.

    MAINTAIN and PUBLISH are named by nodes; REFRESH is one flight each for "inventory", "instances" and "orphans".
    """

    MAINTAIN = "maintain"
    PUBLISH = "publish"
    REFRESH = "refresh"


class Claim(Value, frozen=True):
    """The right to work on one node until the lease ends.

    `fence` only grows over the life of the deployment; `generation` is what the claim saw.
    `news` says that something came since the last claim that ends a wait: the object changed, or a
    person asked.
    """

    kind: WorkKind
    name: NodeName
    token: str
    fence: int
    generation: int
    news: bool = False


class Finished(StrEnum):
    """What `finish` answers."""

    DONE = "done"  # nothing more is known: the entry is gone
    SEND = "send"  # more work came meanwhile: send a message
    WAITING = "waiting"  # it waits until "not before"; sweep will send it
    STALE = "stale"  # the claim was no longer ours


class Work(Protocol):
    """Mark, claim, renew, finish, sweep: the rules of a work queue, made distributed."""

    def mark(
        self,
        kind: WorkKind,
        marks: Iterable[tuple[NodeName, Urgency]],
        *,
        delay_seconds: float = 0.0,
        ends_wait: bool = False,
    ) -> list[NodeName]:
        """Say that nodes have something to do; returns those for which a message must be sent.

        Args:
            kind: which work.
            marks: nodes with their urgency.
            delay_seconds: not before now plus this; only for a node that nothing waits for yet.
            ends_wait: the news is a reason to end a back-off or a wait.
        """
        ...

    def claim(self, kind: WorkKind, name: NodeName) -> Claim | None:
        """Take the node for the lease; None while a live claim holds it. Works without a mark."""
        ...

    def renew(self, claims: Sequence[Claim]) -> list[Claim]:
        """Extend one's own live leases; returns the claims that were lost."""
        ...

    def finish(self, claim: Claim, *, again_after_seconds: float | None = None) -> Finished:
        """Give the node back.

        Args:
            claim: what `claim` gave.
            again_after_seconds: None when the run left nothing to do; 0 to be sent at once; more to
                wait. News that `ends_wait` during the run, or with None any news, means SEND.
        """
        ...

    def sweep(self, kind: WorkKind, limit: int) -> list[NodeName]:
        """Take at most `limit` overdue nodes that no live claim holds, most urgent first, for sending again."""
        ...

    def forget(self, name: NodeName) -> None:
        """Drop all work of a node that is gone; a claim that is still held turns stale."""
        ...


READS = "reads"  # the breaker of this name stops every mutation while reads of EC2 fail


class Grant(StrEnum):
    """What `spend` answers."""

    OK = "ok"
    LOST = "lost"  # the claim is no longer ours: no mutation
    WAIT = "wait"  # the budget of this action is spent: see `wait_seconds`
    PAUSED = "paused"  # people paused mutations
    BROKEN = "broken"  # the breaker of this action is open
    TAKEN = "taken"  # others hold the addresses that were to be drawn


class Reservation(Value, frozen=True):
    """Addresses of a subnet that the ledger holds for one mutation, under an id of the caller's."""

    subnet_id: SubnetId
    id: str
    count: int


class Draw(Value, frozen=True):
    """What a mutation takes from a subnet that has `free` addresses as described.

    The ledger holds them until it is settled, or until a description that began `hold_seconds` later
    has them in its free count.
    """

    reservation: Reservation
    free: int
    hold_seconds: float


class Spent(Value, frozen=True):
    """The answer of `spend`; `wait_seconds` says when to ask again for WAIT, PAUSED and BROKEN.

    An OK with `why` "probe" goes through an open breaker: its success closes it.
    """

    grant: Grant
    wait_seconds: float = 0.0
    why: str = ""


class Pause(Value, frozen=True):
    """Who stopped all mutations, why and since when (Redis seconds)."""

    who: str
    why: str
    since: float


class Budgets(Protocol):
    """One token bucket per EC2 action, shared by all workers, and the fence in front of it."""

    def spend(  # noqa: PLR0913 - all that is decided in the one step
        self,
        claim: Claim,
        action: str,
        instance_id: InstanceId,
        *,
        urgent: bool,
        busy_seconds: float,
        draw: Draw | None = None,
        journal: bytes = b"",
    ) -> Spent:
        """Check the claim's fence, take a token and reserve addresses, in one step, right before a mutation.

        Marks the instance's facts as being changed for up to `busy_seconds` (the call's time-out):
        a describe that starts before the mutation has certainly ended may not overwrite them.
        Routine work (not `urgent`) may not spend the last twentieth of a bucket. `journal` is written
        as the node's entry. Unless the answer is OK nothing was taken, reserved or written.
        """
        ...

    def throttled(self, action: str) -> None:
        """EC2 said RequestLimitExceeded: halve the shared rate of the action (at most once a second)."""
        ...

    def open_breaker(self, action: str, why: str, seconds: float) -> None:
        """Stop an action for everybody for a while; after it one caller at a time may probe."""
        ...

    def close_breaker(self, action: str) -> None:
        """Let everybody through again: a probe succeeded."""
        ...

    def pause(self, who: str, why: str) -> None:
        """Stop all mutations; everything else goes on."""
        ...

    def resume(self) -> None:
        """Let mutations go on."""
        ...

    def paused(self) -> Pause | None:
        """The pause that is in force, or None."""
        ...
