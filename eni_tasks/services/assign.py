"""Assigning more addresses to an interface that is attached: reserve, acquire, call, record."""

from __future__ import annotations

import msgspec

from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.prefixes import SIZE, note_fallback
from eni_tasks.domain.words import counted
from eni_tasks.errors import Ec2Error, LeaseLost
from eni_tasks.model.network import Interface
from eni_tasks.model.plan import Assign
from eni_tasks.model.state import NodeState, Outcome
from eni_tasks.model.work import Claim
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.services.mutate import Mutator, new_reservation
from eni_tasks.services.refusals import Step, react_to_refusal
from eni_tasks.state.limiter import Draw

ACTION = "AssignPrivateIpAddresses"


def assign_addresses(mutator: Mutator, claim: Claim, state: NodeState, action: Assign, *, urgent: bool) -> Step:
    """Assign single addresses or prefixes, and record what EC2 answered.

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
    reservation = new_reservation(action.subnet_id, action.count + SIZE * action.prefix_count)
    free = state.infrastructure.subnets[action.subnet_id].free
    try:
        got = mutator.call(
            claim,
            ACTION,
            lambda: _send(mutator.ec2, action),
            urgent=urgent,
            instance_id=node.instance_id,
            draw=Draw(reservation=reservation, free=free, hold_seconds=mutator.busy_seconds),
        )
    except Ec2Error as error:
        return react_to_refusal(
            mutator,
            error,
            claim,
            state,
            action.subnet_id,
            Outcome(reservation=reservation),
            for_prefix=action.prefix_count > 0,
        )
    count = sum(len(expanded(name)) for name in got)
    mutator.counters.count("ipam_ip_allocation_ops", {"subnet_id": action.subnet_id}, count)
    grown = tuple(_grown(known, got) if known.id == action.interface_id else known for known in state.interfaces or ())
    fields: dict[str, str | int | float] = {
        "node": node.name,
        "interface": action.interface_id,
        "subnet": action.subnet_id,
        "count": count,
        "prefixes": action.prefix_count,
    }
    outcome = Outcome(
        instance_id=node.instance_id,
        interfaces=grown,
        reservation=reservation,
        taken=count,
        event=(ACTION, fields),
    )
    if not mutator.state.runs.record(claim, outcome):
        raise LeaseLost(f"node {node.name}: a later claim wrote already; {count} new addresses are for it to read")
    what = counted(len(got), "/28 prefix") if action.prefix_count else counted(count, "address")
    memory = note_fallback(state.memory, action.interface_id, grown) if action.fallback else None
    return Step(did=f"assigned {what} to {action.interface_id}", changed=True, interfaces=grown, memory=memory)


def _send(ec2: Ec2, action: Assign) -> tuple[str, ...]:
    if action.prefix_count:
        return ec2.assign_prefixes(action.interface_id, action.prefix_count)
    return ec2.assign_addresses(action.interface_id, action.count)


def _grown(interface: Interface, got: tuple[str, ...]) -> Interface:
    """Enter addresses and prefixes; one that a describe call has shown already must not be entered twice."""
    addresses = (*interface.addresses, *(name for name in got if "/" not in name))
    prefixes = (*interface.prefixes, *(name for name in got if "/" in name))
    return msgspec.structs.replace(
        interface, addresses=tuple(dict.fromkeys(addresses)), prefixes=tuple(dict.fromkeys(prefixes))
    )
