"""The stored CiliumNodes and everything that is known of each: memory, journal, facts, limits.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, cast

import msgspec

from eni_tasks.domain.cilium_node import decode_node, machine_of
from eni_tasks.domain.node_state import assemble
from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.cilium_node import CiliumNode, Metadata, version_key
from eni_tasks.model.network import Infrastructure, InstanceId, NodeName
from eni_tasks.model.node import Memory
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import NODE_WORK, WorkKind
from eni_tasks.state import commands
from eni_tasks.state.connection import PORTION_COUNT, Connection, milliseconds
from eni_tasks.state.decoding import decoded, number, prose, text
from eni_tasks.state.facts import decode_facts
from eni_tasks.state.network import NetworkCache, decode_ledger, decode_limits, without_prefix

SCAN_COUNT = 200

# A node's state, or why there is none: it is not stored, or its object can't be understood.
NodeAnswer = NodeState | NodeGone | InvalidInput

_decode_memory = msgspec.json.Decoder(Memory).decode


class JournalDeletion(StrEnum):
    """What `Nodes.delete_journal` answers."""

    DONE = "done"
    CHANGED = "changed"  # the entry is no longer the one that the person was shown
    HELD = "held"  # a live claim holds the node: its worker may be writing


class Nodes:
    """Nodes by name.

    Args:
        connection: the way to Redis.
        network: for the infrastructure, which it keeps decoded.
    """

    def __init__(self, connection: Connection, network: NetworkCache) -> None:
        self._connection = connection
        self._keys = connection.keys
        self._network = network

    def read(self, name: NodeName) -> NodeState:
        """Read everything that is known of a node, in one round trip.

        Raises:
            NodeGone: no such node is stored.
            InvalidInput: its object can't be understood.
        """
        return known(self.decode_state(name, self._connection.send(commands.read_node(self._keys, name))[0]))

    def read_many(self, names: Sequence[NodeName]) -> Iterator[tuple[NodeName, NodeAnswer]]:
        """Read many nodes, in portions, in the order of `names`."""
        for start in range(0, len(names), PORTION_COUNT):
            portion = names[start : start + PORTION_COUNT]
            answers = self._connection.send(*(commands.read_node(self._keys, name) for name in portion))
            for name, answer in zip(portion, answers, strict=True):
                yield name, self.decode_state(name, answer)

    def decode_state(self, name: NodeName, answer: Sequence[Any]) -> NodeAnswer:
        """Decode the answer of read_node.lua."""
        stored, memory, journal, stamp, ledger, cooldowns, now_ms, facts, limits, *rest = answer
        generation, began_at, failure, owner, publish_failure, pending_pods, restores, no_prefix = rest
        if stored is None:
            return NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
        obj = _decode_stored(name, stored)
        known_limits, requested = decode_limits(self._keys, machine_of(obj)[1], limits, now_ms)
        try:
            return assemble(
                obj,
                facts=decode_facts(self._keys, machine_of(obj)[0], facts, began_at),
                limits=known_limits,
                limits_requested=requested,
                infrastructure=self._network.at(stamp) or Infrastructure(),
                reserved=decode_ledger(self._keys, dict(_pairs(ledger))),
                cooling_down=frozenset(text(subnet) for subnet, until in _pairs(cooldowns) if float(until) > now_ms),
                no_prefix=frozenset(without_prefix(self._keys, dict(_pairs(no_prefix)), now_ms / 1000)),
                memory=decoded(f"{self._keys.memory} {name}", memory, _decode_memory) or Memory(),
                journal=journal,
                now=now_ms / 1000,
                generation=text(generation) if generation else "",
                restores=text(restores) if restores else "",
                read_failure=prose(failure),
                publish_failure=prose(publish_failure),
                instance_owner=NodeName(text(owner[0])) if owner else name,
                pending_pods=int(number(f"{self._keys.pending_pods} {name}", pending_pods)),
            )
        except InvalidInput as error:
            return error

    # -- objects ---------------------------------------------------------------------------------
    def before(
        self, objects: Sequence[CiliumNode], *, any_version: bool = False
    ) -> list[CiliumNode | Literal[False] | None]:
        """Compare objects with the stored ones; one round trip per 200 objects.

        Args:
            objects: the objects.
            any_version: compare older ones, too.

        Returns:
            Per object: False if its resourceVersion is not newer than the stored one's (with `any_version`: if it
            is the same), else the object that is stored (None if there is none).
        """
        found: list[CiliumNode | Literal[False] | None] = []
        for start in range(0, len(objects), PORTION_COUNT):
            metas = [obj.metadata for obj in objects[start : start + PORTION_COUNT]]
            names = [meta.name for meta in metas]
            stored, versions = self._connection.send(
                ("HMGET", self._keys.nodes, *names), ("HMGET", self._keys.versions, *names)
            )
            for meta, value, version in zip(metas, stored, versions, strict=True):
                known = text(version).split(" ")[0] if version else ""
                differs = version_key(meta.resource_version) > version_key(known)
                differs |= any_version and meta.resource_version != known
                found.append(False if not differs else _decode_stored(meta.name, value) if value is not None else None)
        return found

    def object(self, name: NodeName) -> CiliumNode | None:
        """The stored object, or None."""
        return next(iter(self.objects([name])), None)

    def objects(self, names: Collection[NodeName]) -> list[CiliumNode]:
        """The stored objects of some nodes; those that aren't stored are missing."""
        if not names:
            return []
        (stored,) = self._connection.send(("HMGET", self._keys.nodes, *names))
        return [_decode_stored(name, value) for name, value in zip(names, stored, strict=True) if value is not None]

    def all_objects(self) -> Iterable[CiliumNode]:
        """All stored objects, read in portions; one that changes meanwhile is shown once, as it was or is."""
        with self._connection.translated():
            seen: dict[bytes, bytes] = dict(self._connection.client.hscan_iter(self._keys.nodes, count=SCAN_COUNT))
        for name, stored in seen.items():
            yield _decode_stored(text(name), stored)

    def names(self) -> list[NodeName]:
        """The names of all stored nodes."""
        (names,) = self._connection.send(("HKEYS", self._keys.nodes))
        return [NodeName(text(name)) for name in names]

    def remove(self, name: NodeName, *, uid: str = "", resource_version: str = "") -> bool:
        """Remove a node with its memory and journal, if it is still that uid (or not newer than that version).

        Returns:
            Whether it was removed.
        """
        keys = [self._keys.nodes, self._keys.versions, self._keys.memory, self._keys.journal]
        return bool(
            self._connection.run("remove_node", keys, [name, uid, resource_version, self._keys.claimants("")]) == 1
        )

    def remove_leftovers(self, name: NodeName) -> None:
        """Delete what a run that was under way may have written of a node that was removed."""
        self._connection.send(
            ("ZREM", self._keys.reads, name),
            ("HDEL", self._keys.memory, name),
            ("HDEL", self._keys.journal, name),
            ("HDEL", self._keys.publish_failures, name),
        )

    def delete_memory(self, name: NodeName) -> None:
        """Delete what earlier runs learned of a node."""
        self._connection.send(("HDEL", self._keys.memory, name))

    def leftovers(self) -> set[NodeName]:
        """Names of nodes that are not stored, and of which entries are left: a late write, or another version's."""
        keys = self._keys
        answers = self._connection.send(
            ("HKEYS", keys.nodes),
            ("HKEYS", keys.memory),
            ("HKEYS", keys.journal),
            *(("ZRANGE", key, 0, -1) for key in (keys.reads, keys.deficits, *map(keys.pending, NODE_WORK))),
        )
        stored, *others = (set(names) for names in answers)
        return {NodeName(text(name)) for name in set().union(*others) - stored}

    def in_deficit(self) -> list[NodeName]:
        """Nodes that lack addresses which they could have, the longest first."""
        (names,) = self._connection.send(("ZRANGE", self._keys.deficits, 0, -1))
        return [NodeName(text(name)) for name in names]

    def owner(self, instance_id: InstanceId) -> NodeName | None:
        """The stored node that an instance belongs to: the one that has named it for longest."""
        (names,) = self._connection.send(("ZRANGE", self._keys.claimants(instance_id), 0, 0))
        return NodeName(text(names[0])) if names else None

    def contested(self) -> dict[InstanceId, list[NodeName]]:
        """Instances that several stored nodes name, with these nodes; the first of them owns the instance."""
        (versions,) = self._connection.send(("HVALS", self._keys.versions))
        named = Counter(value.decode().split(" ")[2] for value in versions)
        instances = sorted(InstanceId(instance) for instance, count in named.items() if instance and count > 1)
        if not instances:
            return {}
        answers = self._connection.send(*(("ZRANGE", self._keys.claimants(each), 0, -1) for each in instances))
        return {
            instance: [NodeName(name.decode()) for name in names]
            for instance, names in zip(instances, answers, strict=True)
        }

    def newest_version(self) -> str:
        """The highest resourceVersion of all stored objects; "" if there are none."""
        (versions,) = self._connection.send(("HVALS", self._keys.versions))
        return max((text(value).split(" ")[0] for value in versions), key=version_key, default="")

    def put_pending_pods(self, counts: Mapping[NodeName, int], *, lifetime_seconds: float) -> None:
        """Replace the numbers of pods that wait on nodes.

        Args:
            counts: how many wait on each node; on one that is missing none does.
            lifetime_seconds: for how long this counts.
        """
        pairs = [word for name, count in counts.items() for word in (name, count)]
        args = [milliseconds(lifetime_seconds), *pairs]
        self._connection.run("put_pending_pods", [self._keys.pending_pods], args)

    # -- journals --------------------------------------------------------------------------------
    def journal(self, name: NodeName) -> bytes | None:
        """The entry of the interface creation that is under way for a node, or None."""
        (entry,) = self._connection.send(("HGET", self._keys.journal, name))
        return cast("bytes | None", entry)

    def journals(self) -> dict[NodeName, bytes]:
        """The entries of all interface creations under way."""
        (entries,) = self._connection.send(("HGETALL", self._keys.journal))
        return {NodeName(text(name)): entry for name, entry in entries.items()}

    def delete_journal(self, name: NodeName, entry: bytes) -> JournalDeletion:
        """Delete a node's journal entry, if it is still `entry` and no live claim holds the node."""
        keys = [self._keys.work(WorkKind.MAINTAIN, name), self._keys.journal]
        return JournalDeletion(text(self._connection.run("delete_journal", keys, [name, entry])))


def known(answer: NodeAnswer) -> NodeState:
    """The state of an answer.

    Raises:
        NodeGone, InvalidInput: there is none; the answer says why.
    """
    if isinstance(answer, NodeState):
        return answer
    raise answer


def _decode_stored(name: str, stored: bytes) -> CiliumNode:
    try:
        return decode_node(stored)
    except InvalidInput as error:
        problem = (
            f"CiliumNode {name}: its entry in Redis can't be decoded ({error}); a change of the object replaces it."
        )
        return CiliumNode(metadata=Metadata(name=name), problem=problem)


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """A script answers a map as a flat list."""
    return zip(flat[::2], flat[1::2], strict=True)
