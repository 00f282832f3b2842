"""Creating an interface: a saga of three calls whose every step is in the journal before and after it is taken.

    intent ── create ──▶ created ── attach ──▶ attached ── set delete-on-termination ──▶ done
                            └──▶ undo ── delete ──▶ done

If a worker dies, the next one that claims the node resumes at the step in the journal:

- intent: the create is repeated. It carries the same client token, so EC2 answers the same interface.
- attaching: an attach has no token, so the interface is looked up first. It may be attached already.
- undo: the interface is looked up before it is deleted. It may be in use after all.
- attached: the interface is used. Only setting delete-on-termination is tried again.

If Redis lost its last writes (another state generation began), the journal may be older than what was done. The
interface is then looked up at every step. Only a live claim can write the journal. If the journal is lost,
`collect_orphans` finds the interface by its tags.
"""

from __future__ import annotations

import uuid
from functools import partial
from itertools import count

import msgspec

from eni_tasks.domain import setbacks
from eni_tasks.domain.addresses import secondary_count
from eni_tasks.domain.creation import note_acceptance
from eni_tasks.domain.eligibility import occupying
from eni_tasks.domain.prefixes import SIZE, note_fallback
from eni_tasks.domain.words import counted
from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import Interface, InterfaceId
from eni_tasks.model.node import Setback
from eni_tasks.model.plan import CreateInterface, SetDeleteOnTermination
from eni_tasks.model.state import NodeState, Outcome
from eni_tasks.model.work import Claim
from eni_tasks.services.journal import Creation, CreationStep, decode, encode
from eni_tasks.services.mutate import Mutator, new_reservation
from eni_tasks.services.refusals import NOTHING_ELSE, SHARED, Step, react_to_refusal
from eni_tasks.state.limiter import Draw

MAX_INDEX_TRIES = 5
YOUNG_SECONDS = 60.0  # for so long an id that EC2 just gave may be unknown to other servers of EC2
REPLACED = "the instance was replaced"

# These answers to a create may be about its IPv6 prefix.
_OF_THE_REQUEST = frozenset({Ec2Reaction.OUR_FAULT, Ec2Reaction.NODE_OVER})
# After these answers to a repeated create the interface certainly does not exist.
_NOT_CREATED = frozenset(
    {Ec2Reaction.SUBNET_FULL, Ec2Reaction.NO_PREFIX, Ec2Reaction.STALE_VIEW, Ec2Reaction.OUR_FAULT}
)


class InterfaceCreator:
    """Creates interfaces, and resumes creations that another worker left.

    Args:
        mutator: makes the calls.
    """

    def __init__(self, mutator: Mutator) -> None:
        self._mutator = mutator
        self._state = mutator.state
        self._ec2 = mutator.ec2

    def create(self, claim: Claim, state: NodeState, action: CreateInterface, *, urgent: bool) -> Step:
        """Create a new interface, attach it, and set delete-on-termination.

        Args:
            claim: the right to change the node.
            state: what the plan was made from.
            action: the plan's action.
            urgent: whether it may take the last tokens.

        Returns:
            What came of it; refusals included.

        Raises:
            LeaseLost, Postponed, AddressesTaken: the journal says how far it came.
        """
        creation = Creation(
            step=CreationStep.INTENT,
            token=uuid.uuid4().hex,
            request=action,
            reservation=new_reservation(action.subnet_id, 1 + action.secondary_count + SIZE * action.prefix_count),
            begun_at=state.now,
            device_index=action.device_index,
            generation=state.generation,
        )
        return self._continue(claim, state, creation, urgent=urgent, resumed=False)

    def resume(self, claim: Claim, state: NodeState, entry: bytes, *, urgent: bool) -> Step:
        """Continue at the step in the journal.

        Raises:
            InvalidInput: the entry can't be decoded.
            LeaseLost, Postponed: as in `create`.
        """
        creation = decode(entry)
        if creation.step is CreationStep.INTENT and _replaced(state, creation):
            # Repeating the create would make the interface: what may exist is left to the orphan collector.
            self._end(claim, Outcome(reservation=creation.reservation))
            return Step(did=f"gave up an interface for {creation.request.instance_id}: {REPLACED}")
        return self._continue(claim, state, creation, urgent=urgent, resumed=True)

    def _continue(self, claim: Claim, state: NodeState, creation: Creation, *, urgent: bool, resumed: bool) -> Step:
        """Take the steps that are left, one after the other."""
        reached: Creation | Step = creation
        doubtful = creation.generation != state.generation
        if creation.step is CreationStep.INTENT:
            reached = self._send_create(claim, state, creation, urgent=urgent, resumed=resumed)
            if doubtful and isinstance(reached, Creation):
                reached = self._look_up(claim, state, reached)
        elif doubtful or creation.step in (CreationStep.ATTACHING, CreationStep.UNDO):
            reached = self._look_up(claim, state, creation)
        elif creation.step is CreationStep.CREATED and _replaced(state, creation):
            reached = self._turn_back(claim, creation, REPLACED)
        elif creation.step is CreationStep.ATTACHED:
            self._record_attached(claim, state, creation)
        if isinstance(reached, Creation) and reached.step is CreationStep.CREATED:
            reached = self._attach(claim, state, reached, urgent=urgent)
        if isinstance(reached, Step):
            return reached
        if reached.step is CreationStep.UNDO:
            return self._delete(claim, reached)
        return self._complete(claim, state, reached, urgent=urgent)

    # -- create ----------------------------------------------------------------------------------
    def _send_create(
        self, claim: Claim, state: NodeState, creation: Creation, *, urgent: bool, resumed: bool
    ) -> Creation | Step:
        request = creation.request
        draw, journal = None, b""
        if not resumed:  # what another worker began has its entry and its reservation
            free = state.infrastructure.subnets[request.subnet_id].free
            hold_seconds = self._mutator.busy_seconds * 3
            draw = Draw(reservation=creation.reservation, free=free, hold_seconds=hold_seconds)
            journal = encode(creation)
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
                    client_token=creation.token,
                    ipv6_prefix=request.ipv6_prefix,
                    prefix_count=request.prefix_count,
                ),
                urgent=urgent,
                draw=draw,
                journal=journal,
            )
        except Ec2Error as error:
            unclear = error.reaction is Ec2Reaction.AMBIGUOUS or (resumed and error.reaction not in _NOT_CREATED)
            if unclear:
                # The journal stays: a repeated create with the same token shows whether it exists.
                return Step(stop=True, failed=True, shared=error.reaction in SHARED, trouble=str(error))
            dropped = Outcome(journal=b"", reservation=creation.reservation)
            step = react_to_refusal(
                self._mutator, error, claim, state, request.subnet_id, dropped, for_prefix=bool(request.prefix_count)
            )
            return self._without_ipv6(state, step, error) if request.ipv6_prefix else step
        taken = 1 + secondary_count(interface)
        created = msgspec.structs.replace(
            creation,
            step=CreationStep.CREATED,
            interface=interface,
            reservation=msgspec.structs.replace(creation.reservation, count=taken),
            generation=state.generation,
        )
        self._write(claim, created, Outcome(reservation=creation.reservation, taken=taken))
        # Counted once it is recorded, so that a create that is repeated for lack of an answer counts once.
        subnet = {"subnet_id": interface.subnet_id}
        self._mutator.counters.count("ipam_interface_creation_ops", subnet)
        self._mutator.counters.count("ipam_ip_allocation_ops", subnet, taken - 1)
        return created

    def _without_ipv6(self, state: NodeState, step: Step, error: Ec2Error) -> Step:
        """Let the next plan do without the IPv6 prefix, if that may be what EC2 refused."""
        if error.reaction not in _OF_THE_REQUEST:
            return step
        setback = setbacks.again(state.memory.ipv6, str(error), self._state.now())
        memory = msgspec.structs.replace(step.memory or state.memory, ipv6=setback)
        if error.reaction is Ec2Reaction.OUR_FAULT:
            return Step(did=f"EC2 refused an interface with an IPv6 prefix: {error.code}", memory=memory)
        return msgspec.structs.replace(step, memory=memory)

    # -- attach ----------------------------------------------------------------------------------
    def _attach(self, claim: Claim, state: NodeState, creation: Creation, *, urgent: bool) -> Creation | Step:
        """Attach the interface at the first free device index."""
        attached = state.facts.interfaces if state.facts else ()
        taken = {known.device_index for known in occupying(attached, creation.request.network_card)}
        index = creation.device_index
        for tries_left in reversed(range(MAX_INDEX_TRIES)):
            try:
                attachment = self._mutator.call(
                    claim,
                    "AttachNetworkInterface",
                    partial(
                        self._ec2.attach_interface,
                        creation.created.id,
                        creation.request.instance_id,
                        device_index=index,
                        network_card=creation.request.network_card,
                    ),
                    urgent=urgent,
                    instance_id=creation.request.instance_id,
                    journal=encode(msgspec.structs.replace(creation, step=CreationStep.ATTACHING, device_index=index)),
                )
            except Ec2Error as error:
                if not (error.index_taken and tries_left):
                    return self._refused_attach(claim, state, creation, error)
                index = next(free for free in count(index + 1) if free not in taken)
            else:
                return self._attached(claim, state, creation, index, attachment)
        raise AssertionError("the last try returns")

    def _refused_attach(self, claim: Claim, state: NodeState, creation: Creation, error: Ec2Error) -> Step:
        if error.reaction is Ec2Reaction.AMBIGUOUS:
            # The attach may run for as long as the call may live: look it up only after that.
            return Step(stop=True, again_after_seconds=self._mutator.busy_seconds, trouble=str(error))
        young = self._state.now() - creation.begun_at < YOUNG_SECONDS
        passing = error.reaction is Ec2Reaction.RETRY_LATER or (error.reaction is Ec2Reaction.STALE_VIEW and young)
        if passing and not error.index_taken:
            self._state.runs.record(claim, Outcome(instance_id=creation.request.instance_id))
            return Step(stop=True, failed=True, shared=error.reaction in SHARED, trouble=str(error))
        undo = msgspec.structs.replace(creation, step=CreationStep.UNDO, why=f"{error.code}: {error.message}")
        entry = Outcome(journal=encode(undo))
        reacted = react_to_refusal(self._mutator, error, claim, state, creation.request.subnet_id, entry)
        deleted = self._delete(claim, undo)
        return msgspec.structs.replace(reacted, did=deleted.did, stop=reacted.stop or deleted.stop)

    def _look_up(self, claim: Claim, state: NodeState, creation: Creation) -> Creation | Step:
        """Find out where the interface is: to be attached, attached, to be undone, or gone."""
        interface_id, instance_id = creation.created.id, creation.request.instance_id
        seen = self._ec2.interfaces_by_id([interface_id]).get(interface_id)
        if seen is None and state.now - creation.begun_at < YOUNG_SECONDS:
            return Step(stop=True, failed=True, shared=True, did=f"{interface_id} is not listed yet")
        if seen is None:
            return self._give_up(claim, creation, f"{interface_id} does not exist any more")
        if seen.instance_id == instance_id:
            index = creation.device_index if seen.device_index is None else seen.device_index
            return self._attached(claim, state, creation, index, seen.attachment_id)
        if seen.instance_id or seen.attachment_id:
            return self._give_up(
                claim, creation, f"{interface_id} is attached to {seen.instance_id or 'another owner'}"
            )
        if creation.step is CreationStep.UNDO or _replaced(state, creation):
            return self._turn_back(claim, creation, creation.why or REPLACED)
        return msgspec.structs.replace(creation, step=CreationStep.CREATED, generation=state.generation)

    def _give_up(self, claim: Claim, creation: Creation, why: str) -> Step:
        """Delete the journal entry of an interface that is not this system's to attach or delete."""
        self._end(claim, Outcome(reservation=creation.reservation))
        return Step(did=f"gave up creating an interface: {why}")

    def _attached(self, claim: Claim, state: NodeState, creation: Creation, index: int, attachment_id: str) -> Creation:
        """Enter the interface among the instance's, together with the journal's step."""
        interface = msgspec.structs.replace(
            creation.created,
            status="in-use",
            instance_id=creation.request.instance_id,
            device_index=index,
            network_card=creation.request.network_card,
            attachment_id=attachment_id,
            attachment_status="attached",
        )
        attached = msgspec.structs.replace(
            creation, step=CreationStep.ATTACHED, interface=interface, generation=state.generation
        )
        self._write(claim, attached, _entered(state, attached))
        return attached

    def _record_attached(self, claim: Claim, state: NodeState, creation: Creation) -> None:
        outcome = _entered(state, creation)
        if outcome.instance_id and not self._state.runs.record(claim, outcome):
            raise LeaseLost(f"node {claim.name}: a later claim wrote already; {creation.created.id} is for it to read")

    # -- set delete-on-termination ---------------------------------------------------------------
    def set_delete_on_termination(self, claim: Claim, state: NodeState, action: SetDeleteOnTermination) -> Step:
        """Take the last step for an interface whose journal was lost.

        Raises:
            LeaseLost, Postponed: nothing was sent, or another worker has continued since.
        """
        try:
            self._send_delete_on_termination(claim, action.interface_id, action.attachment_id, urgent=False)
        except Ec2Error as error:
            return Step(stop=True, failed=True, trouble=str(error))
        interfaces = tuple(
            msgspec.structs.replace(known, delete_on_termination=True) if known.id == action.interface_id else known
            for known in state.interfaces or ()
        )
        self._state.runs.record(claim, Outcome(instance_id=state.node.instance_id, interfaces=interfaces))
        return Step(did=f"set delete-on-termination of {action.interface_id}", changed=True, interfaces=interfaces)

    def _complete(self, claim: Claim, state: NodeState, creation: Creation, *, urgent: bool) -> Step:
        interface = creation.created
        did = (
            f"created {interface.id} in {interface.subnet_id} with {counted(secondary_count(interface), 'address')}, "
            f"attached at device {interface.device_index}"
        )
        trouble = ""
        if creation.request.delete_on_termination:
            try:
                self._send_delete_on_termination(claim, interface.id, interface.attachment_id, urgent=urgent)
            except Ec2Error as error:
                if error.reaction is Ec2Reaction.STALE_VIEW:
                    # It is no longer attached as recorded: the next run looks it up.
                    self._write(claim, msgspec.structs.replace(creation, step=CreationStep.ATTACHING))
                    return Step(did=did, changed=True, stop=True, failed=True, trouble=str(error))
                # The interface works, so the node continues. The plan sets the flag once no address is needed.
                trouble = str(error)
                creation = msgspec.structs.replace(
                    creation, request=msgspec.structs.replace(creation.request, delete_on_termination=False)
                )
        fields = {"node": claim.name, "interface": interface.id, "subnet": interface.subnet_id}
        counts = {"count": secondary_count(interface), "prefixes": len(interface.prefixes)}
        interfaces = _with_created(state, creation)
        outcome = Outcome(event=("CreateNetworkInterface", {**fields, **counts}))
        if trouble and interfaces is not None:
            outcome = msgspec.structs.replace(outcome, instance_id=creation.request.instance_id, interfaces=interfaces)
        self._end(claim, outcome)
        memory = note_acceptance(state.memory)
        if creation.request.fallback:
            memory = note_fallback(memory, interface.id, interfaces or (interface,))
        if creation.request.ipv6_prefix:
            why = f"EC2 gave {interface.id} no IPv6 prefix, although it was asked for."
            setback = Setback() if interface.ipv6_prefixes else setbacks.again(memory.ipv6, why, self._state.now())
            memory = msgspec.structs.replace(memory, ipv6=setback)
        return Step(did=did, changed=True, trouble=trouble, interfaces=interfaces, memory=memory)

    def _send_delete_on_termination(
        self, claim: Claim, interface_id: InterfaceId, attachment_id: str, *, urgent: bool
    ) -> None:
        self._mutator.call(
            claim,
            "ModifyNetworkInterfaceAttribute",
            partial(self._ec2.set_delete_on_termination, interface_id, attachment_id),
            urgent=urgent,
        )

    # -- undo ------------------------------------------------------------------------------------
    def _turn_back(self, claim: Claim, creation: Creation, why: str) -> Creation:
        undo = msgspec.structs.replace(creation, step=CreationStep.UNDO, why=why)
        self._write(claim, undo)
        return undo

    def _delete(self, claim: Claim, creation: Creation) -> Step:
        """Delete an interface that was not attached; such deletes go before new creates."""
        interface = creation.created
        delete = partial(self._ec2.delete_interface, interface.id)
        try:
            self._mutator.call(claim, "DeleteNetworkInterface", delete, urgent=True)
        except Ec2Error as error:
            if error.reaction is Ec2Reaction.STALE_VIEW:
                # It is in use after all: the next run looks it up.
                self._write(claim, msgspec.structs.replace(creation, step=CreationStep.ATTACHING))
            return Step(stop=True, failed=True, did=f"{interface.id} is yet to be deleted", trouble=str(error))
        fields = {"node": claim.name, "interface": interface.id, "why": creation.why}
        self._end(claim, Outcome(reservation=creation.reservation, event=("DeleteNetworkInterface", fields)))
        return Step(did=f"deleted {interface.id} again: {creation.why}")

    # -- the journal -----------------------------------------------------------------------------
    def _write(self, claim: Claim, creation: Creation, outcome: Outcome = NOTHING_ELSE) -> None:
        """Write the step that was reached, together with what else came of it."""
        if not self._state.runs.record(claim, msgspec.structs.replace(outcome, journal=encode(creation))):
            raise LeaseLost(f"node {claim.name}: its claim ran out at step {creation.step}; another worker resumes")

    def _end(self, claim: Claim, outcome: Outcome) -> None:
        """Delete the entry, together with what else came of the last step."""
        if not self._state.runs.record(claim, msgspec.structs.replace(outcome, journal=b"")):
            raise LeaseLost(f"node {claim.name}: its claim ran out after the last step; another worker looks it up")


def _replaced(state: NodeState, creation: Creation) -> bool:
    return state.node.instance_id != creation.request.instance_id


def _with_created(state: NodeState, creation: Creation) -> tuple[Interface, ...] | None:
    """All that the instance has, the new interface included; None if unknown, or if the instance was replaced."""
    facts = state.facts
    if facts is None or facts.instance_id != creation.request.instance_id:
        return None
    new = msgspec.structs.replace(creation.created, delete_on_termination=creation.request.delete_on_termination)
    return (*(known for known in facts.interfaces if known.id != new.id), new)


def _entered(state: NodeState, creation: Creation) -> Outcome:
    interfaces = _with_created(state, creation)
    if state.facts is None or interfaces is None:
        return NOTHING_ELSE  # there are no facts to add to: the read that is due shows it
    return Outcome(instance_id=state.facts.instance_id, interfaces=interfaces)
