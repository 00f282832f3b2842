"""The middle of the saga: attaching an interface that exists, or taking the way back.

After an interruption the first thing is to look: an attach has no client token, and the interface
may be attached already.
"""

from __future__ import annotations

from functools import partial
from itertools import count

import msgspec

from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import Interface
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.ports.state import Facts, Outcome, Store
from eni_tasks.ports.work import Claim
from eni_tasks.services.gather import Gathered
from eni_tasks.services.mutating import Mutator
from eni_tasks.services.reactions import Reactions
from eni_tasks.services.saga import NOTHING_ELSE, Journal, Saga, SagaStep, encode
from eni_tasks.services.step import Step

MAX_INDEX_TRIES = 5
YOUNG_SECONDS = 60.0  # so long an id that EC2 just gave us may be unknown to its other servers
RETRY_SECONDS = 2.0


class Attacher:
    """Brings a saga from CREATED to ATTACHED, or undoes it."""

    def __init__(self, store: Store, ec2: Ec2, mutator: Mutator, reactions: Reactions, journal: Journal) -> None:
        self._store = store
        self._ec2 = ec2
        self._mutator = mutator
        self._reactions = reactions
        self._journal = journal

    def attach(self, claim: Claim, gathered: Gathered, saga: Saga, *, urgent: bool) -> Saga | Step:
        """Attach the interface at the first free device index.

        Returns:
            The saga at ATTACHED, entered among the instance's interfaces; or the step that ends the run.

        Raises:
            LeaseLost, Postponed: nothing was sent since the journal's last entry.
        """
        taken = {known.device_index for known in gathered.facts.interfaces} if gathered.facts else set()
        index = saga.device_index
        for tries_left in reversed(range(MAX_INDEX_TRIES)):
            try:
                attachment = self._mutator.call(
                    claim,
                    "AttachNetworkInterface",
                    partial(self._ec2.attach_interface, saga.made.id, saga.request.instance_id, index),
                    urgent=urgent,
                    instance_id=saga.request.instance_id,
                    journal=encode(msgspec.structs.replace(saga, step=SagaStep.ATTACHING, device_index=index)),
                )
            except Ec2Error as error:
                if not (error.index_taken and tries_left):
                    return self._not_attached(claim, gathered, saga, error)
                index = next(free for free in count(index + 1) if free not in taken)
            else:
                return self._reached(claim, gathered, _attached(saga, index, attachment))
        raise AssertionError("the last try returns")

    def look(self, claim: Claim, gathered: Gathered, saga: Saga) -> Saga | Step:
        """See how far an interrupted attach came.

        Returns:
            The saga at CREATED if it is still to be attached, at ATTACHED or UNDO if that is where
            it stands; or a step that waits.
        """
        seen = self._ec2.interfaces_by_id([saga.made.id]).get(saga.made.id)
        if seen is None and gathered.now - saga.begun_at < YOUNG_SECONDS:
            return Step(stop=True, again_after_seconds=RETRY_SECONDS, did=f"{saga.made.id} is not listed yet")
        if seen is not None and seen.instance_id == saga.request.instance_id:
            index = saga.device_index if seen.device_index is None else seen.device_index
            return self._reached(claim, gathered, _attached(saga, index, seen.attachment_id))
        replaced = gathered.snapshot.node.instance_id != saga.request.instance_id
        if seen is None or seen.instance_id or replaced:
            why = "the instance was replaced" if replaced else "it went elsewhere"
            return self.undo(claim, saga, why)
        return msgspec.structs.replace(saga, step=SagaStep.CREATED)

    def undo(self, claim: Claim, saga: Saga, why: str) -> Saga:
        """Turn back: the interface is not to be attached any more.

        Raises:
            LeaseLost: the claim is over; nothing was written.
        """
        undo = msgspec.structs.replace(saga, step=SagaStep.UNDO, why=why)
        self._journal.write(claim, undo)
        return undo

    def enter(self, claim: Claim, gathered: Gathered, saga: Saga) -> None:
        """Enter the attached interface among the instance's: its addresses can be used from now on.

        Raises:
            LeaseLost: a later claim wrote already.
        """
        outcome = self._entered(gathered, saga)
        if outcome.instance_id and not self._store.record(claim, outcome):
            raise LeaseLost(f"node {claim.name}: a later claim wrote already; {saga.made.id} is for it to read")

    def _reached(self, claim: Claim, gathered: Gathered, saga: Saga) -> Saga:
        self._journal.write(claim, saga, self._entered(gathered, saga))
        return saga

    @staticmethod
    def _entered(gathered: Gathered, saga: Saga) -> Outcome:
        interfaces = with_made(gathered.facts, saga)
        if gathered.facts is None or interfaces is None:
            return NOTHING_ELSE  # nothing is known to add to: the read that is due will show it
        return Outcome(instance_id=gathered.facts.instance_id, interfaces=interfaces)

    def _not_attached(self, claim: Claim, gathered: Gathered, saga: Saga, error: Ec2Error) -> Step:
        if error.reaction is Ec2Reaction.AMBIGUOUS:
            # It may be under way for as long as the call may live: look only after that.
            return Step(stop=True, again_after_seconds=self._mutator.busy_seconds, trouble=str(error))
        young = self._store.now() - saga.begun_at < YOUNG_SECONDS
        passing = error.reaction is Ec2Reaction.RETRY_LATER or (error.reaction is Ec2Reaction.STALE_VIEW and young)
        if passing and not error.index_taken:
            self._store.record(claim, Outcome(instance_id=saga.request.instance_id))
            return Step(stop=True, again_after_seconds=RETRY_SECONDS, trouble=str(error))
        undo = msgspec.structs.replace(saga, step=SagaStep.UNDO, why=f"{error.code}: {error.message}")
        entry = Outcome(journal=encode(undo))
        reacted = self._reactions.to(error, claim, gathered.snapshot, saga.request.subnet_id, entry)
        deleted = self.delete(claim, undo)
        return msgspec.structs.replace(reacted, did=deleted.did, stop=reacted.stop or deleted.stop)

    def delete(self, claim: Claim, saga: Saga) -> Step:
        """Take the way back; compensating deletes go before new creates.

        Raises:
            LeaseLost, Postponed: the journal says UNDO.
        """
        interface = saga.made
        try:
            self._mutator.call(
                claim, "DeleteNetworkInterface", partial(self._ec2.delete_interface, interface.id), urgent=True
            )
        except Ec2Error as error:
            if error.reaction is Ec2Reaction.STALE_VIEW:
                # In use after all: the next run looks where it went.
                self._journal.write(claim, msgspec.structs.replace(saga, step=SagaStep.ATTACHING))
            return Step(stop=True, failed=True, did=f"{interface.id} is yet to be deleted", trouble=str(error))
        fields = {"node": claim.name, "interface": interface.id, "why": saga.why}
        self._journal.strike_out(claim, Outcome(reservation=saga.reservation, event=("DeleteNetworkInterface", fields)))
        return Step(did=f"deleted {interface.id} again: {saga.why}")


def with_made(facts: Facts | None, saga: Saga) -> tuple[Interface, ...] | None:
    """All that the instance has, the new interface included; None if it isn't known, or not this machine's any more."""
    if facts is None or facts.instance_id != saga.request.instance_id:
        return None
    marked = msgspec.structs.replace(saga.made, delete_on_termination=saga.request.delete_on_termination)
    return (*(known for known in facts.interfaces if known.id != marked.id), marked)


def _attached(saga: Saga, device_index: int, attachment_id: str) -> Saga:
    interface = msgspec.structs.replace(
        saga.made,
        status="in-use",
        instance_id=saga.request.instance_id,
        device_index=device_index,
        attachment_id=attachment_id,
        attachment_status="attached",
    )
    return msgspec.structs.replace(saga, step=SagaStep.ATTACHED, interface=interface)
