"""What a node gets beside its pool: an IPv6 prefix, and an Elastic IP on its first interface.

Whatever goes wrong here is noted for the one step (`domain.setbacks`), and the run goes on with the others. Only an
ambiguous answer ends it, as with every mutation: the instance is read before anything else is done to it.
"""

from __future__ import annotations

import random
from functools import partial

import msgspec

from eni_tasks.domain import setbacks
from eni_tasks.domain.static_address import tags
from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import ElasticIp, Interface, InterfaceId
from eni_tasks.model.node import Setback
from eni_tasks.model.plan import AssignIpv6Prefix, AssociateAddress
from eni_tasks.model.state import EventFields, NodeState, Outcome
from eni_tasks.model.work import Claim
from eni_tasks.services.mutate import Mutator, Postponed
from eni_tasks.services.refusals import SHARED, Step, record_refusal

ASSIGN, ASSOCIATE = "AssignIpv6Addresses", "AssociateAddress"
ALREADY_ASSOCIATED = "Resource.AlreadyAssociated"
MAX_TRIES = 3  # of one run: many nodes may choose among the same free Elastic IPs at once


def assign_ipv6_prefix(
    mutator: Mutator, claim: Claim, state: NodeState, action: AssignIpv6Prefix, *, urgent: bool
) -> Step:
    """Assign a /80 to an interface and record what EC2 answered.

    Args:
        mutator: makes the call.
        claim: the right to change the node.
        state: what the plan was made from.
        action: the plan's action.
        urgent: whether it may take the last tokens.

    Returns:
        What came of it; the run goes on whatever it is.

    Raises:
        LeaseLost: another worker has continued since.
        Postponed: this process ends.
    """
    try:
        prefix = mutator.call(
            claim,
            ASSIGN,
            lambda: mutator.ec2.assign_ipv6_prefix(action.interface_id),
            urgent=urgent,
            instance_id=state.node.instance_id,
        )
    except (Ec2Error, Postponed) as error:
        why, shared = _why_not(mutator, claim, state, error)
        setback = setbacks.again(state.memory.ipv6, why, mutator.state.now(), shared=shared)
        return Step(memory=msgspec.structs.replace(state.memory, ipv6=setback))
    before = _interface(state, action.interface_id)
    after = msgspec.structs.replace(before, ipv6_prefixes=(*before.ipv6_prefixes, prefix))
    changed = _record(mutator, claim, state, after, ASSIGN, {"prefix": prefix})
    memory = msgspec.structs.replace(state.memory, ipv6=Setback())
    return Step(did=f"assigned {prefix} to {after.id}", changed=True, interfaces=changed, memory=memory)


def associate_address(mutator: Mutator, claim: Claim, state: NodeState, action: AssociateAddress) -> Step:
    """Associate one of the free Elastic IPs with the primary address of the node's first interface.

    Many nodes may choose among the same ones: EC2 gives each to one node only, and the others try another.

    Args:
        mutator: makes the call.
        claim: the right to change the node.
        state: what the plan was made from.
        action: the plan's action.

    Returns:
        What came of it; the run goes on whatever it is.

    Raises:
        LeaseLost: another worker has continued since.
        Postponed: this process ends.
    """
    wanted = tags(state.node)
    try:
        free = mutator.ec2.free_elastic_ips(action.tags)
        chosen = _associate_one(mutator, claim, state, action, free)
    except (Ec2Error, Postponed) as error:
        why, shared = _why_not(mutator, claim, state, error)
    else:
        if chosen is not None:
            after = msgspec.structs.replace(_interface(state, action.interface_id), public_address=chosen.address)
            fields = {"address": chosen.address, "allocation": chosen.id}
            changed = _record(mutator, claim, state, after, ASSOCIATE, fields)
            memory = msgspec.structs.replace(state.memory, static_address=Setback())
            did = f"associated {chosen.address} with {action.primary_address} of {after.id}"
            return Step(did=did, changed=True, interfaces=changed, memory=memory)
        shared = False
        why = (
            f"No Elastic IP with the tags {wanted} is free for {state.node.name}: allocate one, or correct "
            "static-ip-tags."
        )
    setback = setbacks.again(state.memory.static_address, why, mutator.state.now(), about=wanted, shared=shared)
    return Step(memory=msgspec.structs.replace(state.memory, static_address=setback))


def _associate_one(
    mutator: Mutator, claim: Claim, state: NodeState, action: AssociateAddress, free: tuple[ElasticIp, ...]
) -> ElasticIp | None:
    """Associate one of the Elastic IPs; None if other nodes were faster at every try."""
    for elastic_ip in random.sample(free, min(len(free), MAX_TRIES)):
        send = partial(mutator.ec2.associate_address, elastic_ip, action.interface_id, action.primary_address)
        try:
            mutator.call(claim, ASSOCIATE, send, urgent=False, instance_id=state.node.instance_id)
        except Ec2Error as error:
            if error.code != ALREADY_ASSOCIATED:
                raise
            # The Elastic IP is another node's now, or the interface has one that the facts lack.
            mutator.state.runs.record(claim, Outcome(instance_id=state.node.instance_id))
            mutator.state.reads.request([state.node.name], delay_seconds=mutator.settle_seconds)
        else:
            return elastic_ip
    return None


def _why_not(mutator: Mutator, claim: Claim, state: NodeState, error: Ec2Error | Postponed) -> tuple[str, bool]:
    """Record that a step was not taken; says why, for people, and whether the trouble is not the node's own."""
    if isinstance(error, Postponed):
        if mutator.stopping.is_set():
            raise error
        return str(error), True
    if error.action in (ASSIGN, ASSOCIATE):  # else it is the read before
        record_refusal(mutator, error, claim, state, beside_pool=True)
    why = f"{error.action} for instance {state.node.instance_id}: {error.code}: {error.message}"
    return why, error.reaction in (*SHARED, Ec2Reaction.ACCOUNT_WIDE)


def _interface(state: NodeState, interface_id: InterfaceId) -> Interface:
    return next(each for each in state.interfaces or () if each.id == interface_id)


def _record(  # noqa: PLR0913 - what changed, and what is said of it
    mutator: Mutator, claim: Claim, state: NodeState, after: Interface, what: str, fields: EventFields
) -> tuple[Interface, ...]:
    """Record what an interface is now; returns all that the instance has."""
    interfaces = tuple(after if known.id == after.id else known for known in state.interfaces or ())
    named = {"node": state.node.name, "interface": after.id, "subnet": after.subnet_id, **fields}
    outcome = Outcome(instance_id=state.node.instance_id, interfaces=interfaces, event=(what, named))
    if not mutator.state.runs.record(claim, outcome):
        raise LeaseLost(f"node {state.node.name}: a later claim wrote already; what {what} gave is for it to read")
    return interfaces
