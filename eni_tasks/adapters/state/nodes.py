"""Nodes: their trimmed objects, what runs learned about them, and their journals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from eni_tasks.adapters.state.base import PORTION, Part, decode_object, encode
from eni_tasks.adapters.state.connection import Command, translated
from eni_tasks.domain.cilium_node import machine_of
from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from eni_tasks.model.node import Memory
    from eni_tasks.ports.work import Claim

SCAN_COUNT = 200


class Nodes(Part):
    """The nodes' part of the store."""

    def before(self, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Literal[False] | None]:
        """See `ports.state.Store.before`; one round trip per 200 objects."""
        found: list[dict[str, Any] | Literal[False] | None] = []
        for start in range(0, len(objects), PORTION):
            metas = [obj["metadata"] for obj in objects[start : start + PORTION]]
            names = [meta["name"] for meta in metas]
            stored, versions = self._scripts.together(
                ("HMGET", self._keys.nodes, *names), ("HMGET", self._keys.versions, *names)
            )
            for meta, value, version in zip(metas, stored, versions, strict=True):
                known = version.decode().split(" ")[0] if version else ""
                newer = (len(meta["resourceVersion"]), meta["resourceVersion"]) > (len(known), known)
                found.append(False if not newer else decode_object(value) if value else None)
        return found

    def put_calls(self, objects: Sequence[Mapping[str, Any]]) -> list[Command]:
        """The commands that store objects, each only if it is newer than the stored one's."""
        calls = []
        for start in range(0, len(objects), PORTION):
            args: list[str | bytes] = []
            for obj in objects[start : start + PORTION]:
                meta = obj["metadata"]
                args += [meta["name"], meta["resourceVersion"], meta["uid"], *machine_of(obj), encode(obj)]
            calls.append(self._scripts.call("put_nodes", [self._keys.nodes, self._keys.versions], args))
        return calls

    def noted_calls(self, reads: Sequence[NodeName], needy: Sequence[NodeName]) -> list[Command]:
        """The commands that note nodes to be read, and nodes that lack addresses."""
        words = [word for name in reads for word in ("read", name)]
        words += [word for name in needy for word in ("needy", name)]
        keys = [self._keys.reads, self._keys.needy]
        step = 2 * PORTION
        return [self._scripts.call("note", keys, words[i : i + step]) for i in range(0, len(words), step)]

    def needy_call(self, name: NodeName, *, needy: bool) -> Command:
        """The command that notes whether a node lacks addresses."""
        return self._scripts.call("note", [self._keys.reads, self._keys.needy], ["needy" if needy else "served", name])

    def needy(self) -> list[NodeName]:
        """See `ports.state.Store.needy`."""
        with translated():
            names = cast("list[bytes]", self._client.zrange(self._keys.needy, 0, -1))
        return [NodeName(name.decode()) for name in names]

    def node(self, name: NodeName) -> dict[str, Any] | None:
        """See `ports.state.Store.node`."""
        with translated():
            stored = self._client.hget(self._keys.nodes, name)
        return decode_object(stored) if stored else None

    def objects(self, names: Collection[NodeName]) -> list[dict[str, Any]]:
        """See `ports.state.Store.objects`."""
        if not names:
            return []
        (stored,) = self._scripts.together(("HMGET", self._keys.nodes, *names))
        return [decode_object(value) for value in stored if value]

    def names(self) -> list[NodeName]:
        """See `ports.state.Store.names`."""
        with translated():
            return [NodeName(name.decode()) for name in cast("list[bytes]", self._client.hkeys(self._keys.nodes))]

    def nodes(self) -> Iterable[dict[str, Any]]:
        """See `ports.state.Store.nodes`; a node changed meanwhile is shown once, as it was or is."""
        with translated():
            seen: dict[bytes, bytes] = dict(self._client.hscan_iter(self._keys.nodes, count=SCAN_COUNT))
        for stored in seen.values():
            yield decode_object(stored)

    def drop_node(self, name: NodeName, *, uid: str = "", resource_version: str = "") -> bool:
        """See `ports.state.Store.drop_node`."""
        keys = [self._keys.nodes, self._keys.versions, self._keys.memory, self._keys.journal]
        return bool(self._scripts.run("drop_node", keys, [name, uid, resource_version]) == 1)

    def journals(self) -> dict[NodeName, bytes]:
        """See `ports.state.Store.journals`."""
        with translated():
            entries = cast("dict[bytes, bytes]", self._client.hgetall(self._keys.journal))
        return {NodeName(name.decode()): entry for name, entry in entries.items()}

    def forget(self, name: NodeName) -> None:
        """See `ports.state.Store.forget`."""
        with translated():
            pipe = self._client.pipeline(transaction=False)
            pipe.zrem(self._keys.reads, name)
            pipe.hdel(self._keys.memory, name)
            pipe.hdel(self._keys.journal, name)
            pipe.execute()

    def memory_call(self, claim: Claim, memory: Memory) -> Command:
        """The command that writes what a run learned, if the claim is live."""
        return self._fenced_call(claim, self._keys.memory, encode(memory))

    def journal_call(self, claim: Claim, entry: bytes) -> Command:
        """The command that writes the saga's step (b"" strikes it out), if the claim is live."""
        return self._fenced_call(claim, self._keys.journal, entry)

    def _fenced_call(self, claim: Claim, key: str, value: bytes) -> Command:
        keys = [self._keys.work(claim.kind, claim.name), key]
        return self._scripts.call("put_fenced", keys, [claim.name, claim.token, value])
