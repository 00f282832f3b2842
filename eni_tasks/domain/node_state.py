"""Puts together what is known of a node into one `NodeState`, and says what follows from it after a change."""

from __future__ import annotations

import msgspec

from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import Infrastructure, Interface, Limits, NodeName
from eni_tasks.model.node import Memory
from eni_tasks.model.state import Facts, NodeState


def assemble(  # noqa: PLR0913 - one value per part of the state
    obj: CiliumNode,
    *,
    facts: Facts | None,
    limits: Limits | None,
    limits_requested: bool,
    infrastructure: Infrastructure,
    reserved: dict[str, int],
    cooling_down: frozenset[str],
    no_prefix: frozenset[str],
    memory: Memory,
    journal: bytes | None,
    now: float,
    generation: str,
    restores: str,
    read_failure: str,
    publish_failure: str,
    instance_owner: NodeName,
    pending_pods: int = 0,
) -> NodeState:
    """Put a node's state together. Memory of another uid or instance under the same name counts as none.

    Args:
        obj: the stored CiliumNode.
        facts: those of the instance that it names.
        limits: those of its type.
        limits_requested: whether EC2 was asked for them.
        infrastructure: what the nodes share.
        reserved: addresses held against each subnet's free count.
        cooling_down: subnets that reported that they are full.
        no_prefix: subnets that reported that they have no free /28 prefix.
        memory: what earlier runs learned, as stored.
        journal: the entry of an interface creation under way.
        now: Redis' time in seconds.
        generation: the state generation.
        restores: how often the API server's objects went back, "" if never.
        read_failure: why the last read of EC2 failed, "" if it succeeded.
        publish_failure: why the object could not be written lately, "" if it could.
        instance_owner: the node that the instance belongs to.
        pending_pods: how many of the node's pods wait.

    Raises:
        InvalidInput: the object can't be understood.
    """
    node = parse_node(obj, now)
    if limits is not None:
        node = msgspec.structs.replace(node, network_card=limits.network_card)
    same = (memory.uid, memory.instance_id) == (node.uid, node.instance_id)
    return NodeState(
        node=node,
        now=now,
        obj=obj,
        facts=facts,
        limits=limits,
        limits_requested=limits_requested,
        infrastructure=infrastructure,
        reserved=reserved,
        cooling_down=cooling_down,
        no_prefix=no_prefix,
        memory=memory if same else Memory(uid=node.uid, instance_id=node.instance_id),
        stored_memory=memory,
        journal=journal,
        generation=generation,
        restores=restores,
        read_failure=read_failure,
        publish_failure=publish_failure,
        instance_owner=instance_owner,
        pending_pods=pending_pods,
    )


def with_memory(state: NodeState, memory: Memory) -> NodeState:
    """The same state, with what a run has learned since."""
    return msgspec.structs.replace(state, memory=memory)


def after_change(state: NodeState, interfaces: tuple[Interface, ...]) -> NodeState:
    """The state after a mutation whose outcome is recorded: EC2's own answer is the newest fact.

    Args:
        state: what was known before; its facts are known.
        interfaces: all that the instance has now.
    """
    known = state.facts or Facts(instance_id=state.node.instance_id, interfaces=(), described_at=0.0)
    facts = msgspec.structs.replace(
        known, interfaces=interfaces, unconfirmed_since=0.0, mutation_pending=False, lacking={}
    )
    return msgspec.structs.replace(state, facts=facts, journal=None)
