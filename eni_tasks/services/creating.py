"""Creating an interface: a saga whose every step is in the journal before and after it is taken.

intent → created → attaching → attached → struck out. Whoever claims the node next resumes at the step that was
reached. Before attach the way back is delete; once attached the interface is used, and only its
marking (delete on termination) is tried again.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InterfaceId
from eni_tasks.model.plan import CreateInterface, MarkInterface
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.ports.state import Outcome, Store
from eni_tasks.ports.work import Claim, Draw
from eni_tasks.services.attaching import Attacher, with_made
from eni_tasks.services.gather import Gathered
from eni_tasks.services.mutating import Mutator, reserved
from eni_tasks.services.reactions import Reactions
from eni_tasks.services.saga import Journal, Saga, SagaStep, decode, encode
from eni_tasks.services.step import Step

# After these answers to a repeated create the interface certainly does not exist.
_NOT_CREATED = frozenset({Ec2Reaction.SUBNET_FULL, Ec2Reaction.STALE_VIEW, Ec2Reaction.OUR_FAULT})


class Creator:
    """Carries out `CreateInterface`, and resumes what another worker left."""

    def __init__(self, store: Store, ec2: Ec2, mutator: Mutator, reactions: Reactions, meter: Meter) -> None:
        self._store = store
        self._ec2 = ec2
        self._mutator = mutator
        self._reactions = reactions
        self._meter = meter
        self._journal = Journal(store)
        self._attacher = Attacher(store, ec2, mutator, reactions, self._journal)

    def begin(self, claim: Claim, gathered: Gathered, action: CreateInterface, *, urgent: bool) -> Step:
        """Create, attach and mark a new interface.

        Args:
            claim: the right to change the node.
            gathered: what the plan was made from.
            action: the plan's action.
            urgent: whether it may spend the last tokens of the budgets.

        Returns:
            What came of it; refusals included.

        Raises:
            LeaseLost, Postponed, AddressesTaken: the journal says how far it came.
        """
        saga = Saga(
            step=SagaStep.INTENT,
            token=uuid.uuid4().hex,
            request=action,
            reservation=reserved(action.subnet_id, action.secondary_count + 1),
            begun_at=gathered.now,
            device_index=action.device_index,
        )
        return self._go(claim, gathered, saga, urgent=urgent, resumed=False)

    def resume(self, claim: Claim, gathered: Gathered, entry: bytes, *, urgent: bool) -> Step:
        """Go on with what the journal says, whoever began it.

        Raises:
            InvalidInput: the entry can't be read.
            LeaseLost, Postponed: as in `begin`.
        """
        saga = decode(entry)
        if saga.step is SagaStep.INTENT and gathered.snapshot.node.instance_id != saga.request.instance_id:
            # Asking whether it was made would make it: what there may be is left to the orphans' collector.
            self._journal.strike_out(claim, Outcome(reservation=saga.reservation))
            return Step(did=f"gave up an interface for {saga.request.instance_id}: the instance was replaced")
        return self._go(claim, gathered, saga, urgent=urgent, resumed=True)

    def mark(self, claim: Claim, gathered: Gathered, action: MarkInterface) -> Step:
        """Take the last step for an interface whose saga nobody remembers.

        Raises:
            LeaseLost, Postponed: nothing was sent, or another worker has gone on since.
        """
        try:
            self._set_delete_on_termination(claim, action.interface_id, action.attachment_id, urgent=False)
        except Ec2Error as error:
            return Step(stop=True, failed=True, trouble=str(error))
        interfaces = tuple(
            msgspec.structs.replace(known, delete_on_termination=True) if known.id == action.interface_id else known
            for known in gathered.snapshot.interfaces or ()
        )
        self._store.record(claim, Outcome(instance_id=gathered.snapshot.node.instance_id, interfaces=interfaces))
        return Step(did=f"marked {action.interface_id}", changed=True, interfaces=interfaces)

    def _set_delete_on_termination(
        self, claim: Claim, interface_id: InterfaceId, attachment_id: str, *, urgent: bool
    ) -> None:
        self._mutator.call(
            claim,
            "ModifyNetworkInterfaceAttribute",
            lambda: self._ec2.set_delete_on_termination(interface_id, attachment_id),
            urgent=urgent,
        )

    def _go(self, claim: Claim, gathered: Gathered, saga: Saga, *, urgent: bool, resumed: bool) -> Step:
        """Take the steps that are left, one after the other."""
        reached: Saga | Step = saga
        replaced = gathered.snapshot.node.instance_id != saga.request.instance_id
        if saga.step is SagaStep.INTENT:
            reached = self._create(claim, gathered, saga, urgent=urgent, resumed=resumed)
        elif saga.step is SagaStep.CREATED and replaced:
            reached = self._attacher.undo(claim, saga, "the instance was replaced")
        elif saga.step is SagaStep.ATTACHING:
            reached = self._attacher.look(claim, gathered, saga)
        elif saga.step is SagaStep.ATTACHED:
            self._attacher.enter(claim, gathered, saga)
        if isinstance(reached, Saga) and reached.step is SagaStep.CREATED:
            reached = self._attacher.attach(claim, gathered, reached, urgent=urgent)
        if isinstance(reached, Step):
            return reached
        if reached.step is SagaStep.UNDO:
            return self._attacher.delete(claim, reached)
        return self._mark(claim, gathered, reached, urgent=urgent)

    def _create(self, claim: Claim, gathered: Gathered, saga: Saga, *, urgent: bool, resumed: bool) -> Saga | Step:
        request = saga.request
        # What another worker began has its entry and its reservation.
        ahead: dict[str, Any] = {}
        if not resumed:
            free = gathered.snapshot.infrastructure.subnets[request.subnet_id].free
            hold_seconds = self._mutator.busy_seconds * 3
            ahead["draw"] = Draw(reservation=saga.reservation, free=free, hold_seconds=hold_seconds)
            ahead["journal"] = encode(saga)
        try:
            interface = self._mutator.call(
                claim,
                "CreateNetworkInterface",
                lambda: self._ec2.create_interface(
                    subnet_id=request.subnet_id,
                    secondary_count=request.secondary_count,
                    security_groups=request.security_groups,
                    description=request.description,
                    tags=request.tags,
                    client_token=saga.token,
                ),
                urgent=urgent,
                **ahead,
            )
        except Ec2Error as error:
            unclear = error.reaction is Ec2Reaction.AMBIGUOUS or (resumed and error.reaction not in _NOT_CREATED)
            if unclear:
                # The journal stays: the same token will tell whether it exists.
                return Step(stop=True, failed=True, trouble=str(error))
            dropped = Outcome(journal=b"", reservation=saga.reservation)
            return self._reactions.to(error, claim, gathered.snapshot, request.subnet_id, dropped)
        taken = len(interface.addresses) + 1
        made = msgspec.structs.replace(
            saga,
            step=SagaStep.CREATED,
            interface=interface,
            reservation=msgspec.structs.replace(saga.reservation, count=taken),
        )
        self._journal.write(claim, made, Outcome(reservation=saga.reservation, taken=taken))
        # Counted with the entry, so that a create that is repeated for want of an answer counts once.
        self._meter.count("ipam_interface_creation_ops", {"subnet_id": interface.subnet_id})
        self._meter.count("ipam_ip_allocation_ops", {"subnet_id": interface.subnet_id}, len(interface.addresses))
        return made

    def _mark(self, claim: Claim, gathered: Gathered, saga: Saga, *, urgent: bool) -> Step:
        interface = saga.made
        did = (
            f"created {interface.id} in {interface.subnet_id} with {len(interface.addresses)} addresses, "
            f"attached at device {interface.device_index}"
        )
        if saga.request.delete_on_termination:
            try:
                self._set_delete_on_termination(claim, interface.id, interface.attachment_id, urgent=urgent)
            except Ec2Error as error:
                if error.reaction is Ec2Reaction.STALE_VIEW:
                    # It is no longer attached the way we know: the next run looks where it is.
                    self._journal.write(claim, msgspec.structs.replace(saga, step=SagaStep.ATTACHING))
                return Step(did=did, changed=True, stop=True, failed=True, trouble=str(error))
        fields: dict[str, str | int | float] = {
            "node": claim.name,
            "interface": interface.id,
            "subnet": interface.subnet_id,
            "count": len(interface.addresses),
        }
        self._journal.strike_out(claim, Outcome(event=("CreateNetworkInterface", fields)))
        return Step(did=did, changed=True, interfaces=with_made(gathered.facts, saga))
