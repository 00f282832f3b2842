"""Gathering everything a decision may look at, once, into a frozen snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from eni_tasks.domain.cilium_node import machine_of, parse_node
from eni_tasks.domain.eligibility import occupying
from eni_tasks.errors import NodeGone
from eni_tasks.model.network import Infrastructure, InstanceId, Interface, Limits, NodeName, Value
from eni_tasks.model.node import Memory, Node, Snapshot
from eni_tasks.ports.state import Facts, Store, World


class Gathered(Value, frozen=True):
    """A snapshot, the object it was read from, the facts behind it and the saga in flight.

    `now` is Redis' time of the gathering; `limits_asked` tells an unknown type from one that nobody
    has asked EC2 about yet. `stored` is the memory as it is written down; the snapshot's is what follows
    from it now.
    """

    snapshot: Snapshot
    now: float
    limits_asked: bool
    stored: Memory
    obj: dict[str, Any]
    facts: Facts | None
    journal: bytes | None


def gather(store: Store, name: NodeName) -> Gathered:
    """Read one node's world from the shared state.

    Args:
        store: the shared state.
        name: the node.

    Returns:
        The snapshot; what is unknown in it is None, never zero.

    Raises:
        NodeGone: no such node is stored.
        InvalidInput: its object can't be understood.
        StateUnavailable: Redis did not answer.
    """
    return understood(name, store.gather(name))


def understood(name: NodeName, world: World) -> Gathered:
    """Put together what was read of a node.

    Args:
        name: the node.
        world: what was read.

    Returns:
        The snapshot; what is unknown in it is None, never zero.

    Raises:
        NodeGone: no such node is stored.
        InvalidInput: its object can't be understood.
    """
    if world.obj is None:
        raise NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
    node = parse_node(world.obj)
    snapshot = snapshot_of(
        node,
        world.facts,
        world.limits,
        world.infrastructure or Infrastructure(),
        world.memory,
        reserved=world.reserved,
        benched=world.benched,
    )
    return Gathered(
        snapshot=snapshot,
        now=world.now,
        limits_asked=world.limits_asked,
        stored=world.memory,
        obj=world.obj,
        facts=world.facts,
        journal=world.journal,
    )


def instance_of(world: World) -> InstanceId:
    """The instance that a node's object names, "" if none; for log lines, whatever else may be wrong with it."""
    return machine_of(world.obj)[0] if world.obj else InstanceId("")


def with_memory(gathered: Gathered, memory: Memory, interfaces: tuple[Interface, ...] | None = None) -> Gathered:
    """The same world, with what a run has learned since and (if given) the interfaces that it made."""
    snapshot = msgspec.structs.replace(
        gathered.snapshot,
        memory=memory,
        interfaces=gathered.snapshot.interfaces if interfaces is None else interfaces,
    )
    return msgspec.structs.replace(
        gathered, snapshot=snapshot, journal=gathered.journal if interfaces is None else None
    )


def snapshot_of(  # noqa: PLR0913 - one value per part of the world
    node: Node,
    facts: Facts | None,
    limits: Limits | None,
    infrastructure: Infrastructure,
    memory: Memory,
    *,
    reserved: Mapping[str, int],
    benched: frozenset[str],
) -> Snapshot:
    """Put a snapshot together; facts in doubt count as unknown, memory of another machine as none.

    Returns:
        What the planner may look at.
    """
    same = (memory.uid, memory.instance_id) == (node.uid, node.instance_id)
    known = facts is not None and not facts.doubted_at and not facts.in_air
    return Snapshot(
        node=node,
        interfaces=facts.interfaces if facts is not None and known else None,
        limits=limits,
        infrastructure=infrastructure,
        reserved=dict(reserved),
        benched=benched,
        memory=_learned(memory, facts) if same else Memory(uid=node.uid, instance_id=node.instance_id),
    )


def _learned(memory: Memory, facts: Facts | None) -> Memory:
    """Enter how many interfaces fit, once a read has shown how many there were when EC2 refused another."""
    if facts is None or facts.doubted_at or facts.in_air:
        return memory
    attached = len(occupying(facts.interfaces))
    if 0 < memory.full_at < facts.described_at:
        return msgspec.structs.replace(memory, learned_max_interfaces=attached, full_at=0.0)
    if memory.learned_max_interfaces is not None and attached > memory.learned_max_interfaces:
        return msgspec.structs.replace(memory, learned_max_interfaces=attached)
    return memory
