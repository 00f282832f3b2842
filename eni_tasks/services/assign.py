"""Assigning more addresses to an interface that is attached: reserve, acquire, call, record."""

from __future__ import annotations

import msgspec

from eni_tasks.domain.words import counted
from eni_tasks.errors import Ec2Error, LeaseLost
from eni_tasks.model.plan import Assign
from eni_tasks.model.state import NodeState, Outcome
from eni_tasks.model.work import Claim
from eni_tasks.services.mutate import Mutator, new_reservation
from eni_tasks.services.refusals import Step, react_to_refusal
from eni_tasks.state.limiter import Draw

ACTION = "AssignPrivateIpAddresses"


def assign_addresses(mutator: Mutator, claim: Claim, state: NodeState, action: Assign, *, urgent: bool) -> Step:
    """Assign addresses and record what EC2 answered.

    Args:
        mutator: makes the call.
        claim: the right to change the node.
        state: what the plan was made from.
        action: the plan's action.
        urgent: whether it may take the last tokens.

    Returns:
        What came of it; refusals included.

    Raises:
        LeaseLost, Postponed, AddressesTaken: nothing was sent, or another worker has continued since.
    """
    node = state.node
    reservation = new_reservation(action.subnet_id, action.count)
    free = state.infrastructure.subnets[action.subnet_id].free
    try:
        got = mutator.call(
            claim,
            ACTION,
            lambda: mutator.ec2.assign_addresses(action.interface_id, action.count),
            urgent=urgent,
            instance_id=node.instance_id,
            draw=Draw(reservation=reservation, free=free, hold_seconds=mutator.busy_seconds),
        )
    except Ec2Error as error:
        return react_to_refusal(mutator, error, claim, state, action.subnet_id, Outcome(reservation=reservation))
    mutator.counters.count("ipam_ip_allocation_ops", {"subnet_id": action.subnet_id}, len(got))
    # An address that a describe call has shown already must not be entered twice.
    grown = tuple(
        msgspec.structs.replace(known, addresses=tuple(dict.fromkeys((*known.addresses, *got))))
        if known.id == action.interface_id
        else known
        for known in state.interfaces or ()
    )
    fields: dict[str, str | int | float] = {
        "node": node.name,
        "interface": action.interface_id,
        "subnet": action.subnet_id,
        "count": len(got),
    }
    outcome = Outcome(
        instance_id=node.instance_id,
        interfaces=grown,
        reservation=reservation,
        taken=len(got),
        event=(ACTION, fields),
    )
    if not mutator.state.runs.record(claim, outcome):
        raise LeaseLost(f"node {node.name}: a later claim wrote already; {len(got)} new addresses are for it to read")
    return Step(did=f"assigned {counted(len(got), 'address')} to {action.interface_id}", changed=True, interfaces=grown)
