"""What follows from each kind of refusal of EC2, for the node at hand: one table, one place.

Throttling and unclear answers never lead to creating an interface. Trouble of the whole account is handled by
the breaker and costs the node only a wait.
"""

from __future__ import annotations

import random

import msgspec

from eni_tasks.domain.creation import note_refusal
from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import Interface, SubnetId, Value
from eni_tasks.model.node import Memory, ReleaseMemory
from eni_tasks.model.state import NodeState, Outcome
from eni_tasks.model.work import Claim
from eni_tasks.services.mutate import Mutator

COOLDOWN_SECONDS = 120.0  # as AWS's own controllers do after "subnet full"
# A subnet without a free prefix is asked again after this; the wait doubles while it has none.
NO_PREFIX_SECONDS, NO_PREFIX_LONGEST_SECONDS = 120.0, 1800.0
NOT_RUNNING_SECONDS = 60.0
ACCOUNT_WAIT_SECONDS = 60.0

NOTHING_ELSE = Outcome()

# EC2's answer contradicts the facts, or says nothing at all.
_UNCONFIRMED = frozenset(
    {
        Ec2Reaction.INTERFACE_FULL,
        Ec2Reaction.INSTANCE_FULL,
        Ec2Reaction.STALE_VIEW,
        Ec2Reaction.NODE_OVER,
        Ec2Reaction.AMBIGUOUS,
    }
)
# Trouble that is not the node's own.
SHARED = frozenset({Ec2Reaction.RETRY_LATER, Ec2Reaction.AMBIGUOUS})


class Step(Value, frozen=True):
    """The outcome of one action.

    `did` says in words what was done; `changed` that EC2's side of the node is different now. `stop` ends the
    run; `again_after_seconds` then says when the node is to be looked at again (None: when something changes).
    A `failed` step counts towards the node's back-off; with `shared` the trouble is not the node's own (EC2, the
    account, the network), and the back-off is shorter. `trouble` is shown in the object. `memory` replaces the
    node's memory if given, `release` that of releases. `interfaces` are all that the instance has after a
    change, if that is known.
    """

    did: str = ""
    changed: bool = False
    stop: bool = False
    failed: bool = False
    shared: bool = False
    again_after_seconds: float | None = None
    trouble: str = ""
    memory: Memory | None = None
    release: ReleaseMemory | None = None
    interfaces: tuple[Interface, ...] | None = None


def react_to_refusal(  # noqa: PLR0913 - a refusal and all that it was about
    mutator: Mutator,
    error: Ec2Error,
    claim: Claim,
    node_state: NodeState,
    subnet_id: SubnetId,
    outcome: Outcome = NOTHING_ELSE,
    *,
    for_prefix: bool = False,
) -> Step:
    """React to a refused mutation.

    Args:
        mutator: what made the call.
        error: what EC2 said.
        claim: the right to the node.
        node_state: what the decision was based on.
        subnet_id: where the addresses were to come from.
        outcome: what else is to be recorded, unless the answer is ambiguous.
        for_prefix: whether /28 prefixes were asked for.

    Returns:
        The step. After "subnet full" and "no prefix" the run plans again at once; everything else ends it.

    Raises:
        LeaseLost: the journal is no longer this claim's to write.
    """
    state, node, memory = mutator.state, node_state.node, node_state.memory
    record_refusal(mutator, error, claim, node_state, outcome)
    text = f"{error.action} for instance {node.instance_id}: {error.code}: {error.message}"
    match error.reaction:
        case Ec2Reaction.SUBNET_FULL | Ec2Reaction.NO_PREFIX:
            only_prefix = for_prefix and error.reaction is Ec2Reaction.NO_PREFIX
            return Step(did=_note_no_room(mutator, subnet_id, only_prefix=only_prefix), trouble=text)
        case Ec2Reaction.INSTANCE_FULL:
            return Step(stop=True, trouble=text, memory=note_refusal(memory, node, state.now()))
        case Ec2Reaction.NOT_RUNNING:
            until = state.now() + NOT_RUNNING_SECONDS
            stopped = msgspec.structs.replace(memory, not_running_until=until)
            return Step(stop=True, trouble=text, memory=stopped, again_after_seconds=NOT_RUNNING_SECONDS + 1)
        case Ec2Reaction.ACCOUNT_WIDE:
            wait = ACCOUNT_WAIT_SECONDS * random.uniform(1.0, 1.5)  # noqa: S311 - jitter, no secret
            return Step(stop=True, trouble=text, again_after_seconds=wait)
        case Ec2Reaction.RETRY_LATER if error.throttled:
            wait = random.uniform(1.0, 4.0)  # noqa: S311 - jitter, no secret
            return Step(stop=True, again_after_seconds=wait)
        case _:
            return Step(stop=True, failed=True, shared=error.reaction in SHARED, trouble=text)


def _note_no_room(mutator: Mutator, subnet_id: SubnetId, *, only_prefix: bool) -> str:
    network = mutator.state.network
    if only_prefix:
        network.note_no_prefix(subnet_id, first_seconds=NO_PREFIX_SECONDS, longest_seconds=NO_PREFIX_LONGEST_SECONDS)
        return f"subnet {subnet_id} has no free /28 prefix"
    network.cool_down(subnet_id, COOLDOWN_SECONDS)
    return f"subnet {subnet_id} is full"


def record_refusal(  # noqa: PLR0913 - a refusal and all that it was about
    mutator: Mutator,
    error: Ec2Error,
    claim: Claim,
    node_state: NodeState,
    outcome: Outcome = NOTHING_ELSE,
    *,
    beside_pool: bool = False,
) -> None:
    """Record a refused mutation, and request a read if EC2's answer contradicts the facts or says nothing.

    Args:
        mutator: what made the call.
        error: what EC2 said.
        claim: the right to the node.
        node_state: what the decision was based on.
        outcome: what else is to be recorded, unless the answer is ambiguous.
        beside_pool: the mutation was about something beside the pool: unless the answer is ambiguous, the facts about
            the pool stay good.

    Raises:
        LeaseLost: the journal is no longer this claim's to write.
    """
    state, node = mutator.state, node_state.node
    unconfirmed = error.reaction in _UNCONFIRMED
    if error.reaction is not Ec2Reaction.AMBIGUOUS:
        unknown = unconfirmed and not beside_pool
        recorded = msgspec.structs.replace(outcome, instance_id=node.instance_id, unconfirmed=unknown)
        if not state.runs.record(claim, recorded) and outcome.journal is not None:
            raise LeaseLost(f"node {node.name}: its claim ran out after {error.action}; another worker continues")
    if unconfirmed:
        # What was refused is not tried again before a read that started after the mutation has certainly ended.
        lag = mutator.busy_seconds if error.reaction is Ec2Reaction.AMBIGUOUS else 0.0
        state.reads.request([node.name], delay_seconds=lag + mutator.settle_seconds)
