"""`ports.state.Store` on Redis: the parts together, nodes' worlds in one round trip, and coordination."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, cast

import msgspec

from eni_tasks.adapters.state.base import PORTION, decode_object, milliseconds, seconds
from eni_tasks.adapters.state.connection import Command, translated
from eni_tasks.adapters.state.facts import FIELDS, InstanceFacts, decode_facts
from eni_tasks.adapters.state.nodes import Nodes
from eni_tasks.adapters.state.shared import Shared, decode_limits
from eni_tasks.domain.cilium_node import machine_of
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Memory
from eni_tasks.ports.state import Event, Outcome, Progress, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from eni_tasks.ports.work import Claim

EVENTS_KEPT = 10_000
_decode_memory = msgspec.json.Decoder(Memory).decode


class RedisStore(Nodes, InstanceFacts, Shared):
    """Everything but work and budgets."""

    def now(self) -> float:
        """See `ports.state.Store.now`."""
        with translated():
            return self._now_ms() / 1000

    def gather(self, name: NodeName) -> World:
        """See `ports.state.Store.gather`."""
        return self.world(self._scripts.together(self.world_call(name))[0])

    def gather_all(self, names: Sequence[NodeName]) -> Iterable[World]:
        """See `ports.state.Store.gather_all`."""
        for start in range(0, len(names), PORTION):
            calls = [self.world_call(name) for name in names[start : start + PORTION]]
            yield from map(self.world, self._scripts.together(*calls))

    def world_call(self, name: NodeName) -> Command:
        """The command that reads a node's world; `world` understands its answer."""
        keys = self._keys
        touched = [keys.nodes, keys.versions, keys.memory, keys.journal, keys.infrastructure, keys.ledger]
        touched += [keys.benched, keys.limits]
        return self._scripts.call("world", touched, [name, keys.facts(""), *FIELDS])

    def world(self, answer: Sequence[Any]) -> World:
        """Read the answer of `world_call`."""
        stored, memory, journal, stamp, ledger, benched, now_ms, facts, limits = answer
        obj = decode_object(stored) if stored else None
        known, asked = decode_limits(limits, now_ms)
        return World(
            obj=obj,
            memory=_decode_memory(memory) if memory else Memory(),
            journal=journal,
            infrastructure=self._infrastructure_at(stamp),
            reserved={subnet.decode(): int(count) for subnet, count in _pairs(ledger)},
            benched=frozenset(subnet.decode() for subnet, until in _pairs(benched) if float(until) > now_ms),
            now=now_ms / 1000,
            facts=decode_facts(machine_of(obj)[0], facts) if obj else None,
            limits=known,
            limits_asked=asked,
        )

    def record(self, claim: Claim, outcome: Outcome) -> bool:
        """See `ports.state.Store.record`."""
        calls: list[Command] = []
        if outcome.journal is not None:
            calls.append(self.journal_call(claim, outcome.journal))
        if outcome.instance_id:
            calls.append(self.facts_call(claim, outcome))
        fenced = len(calls)
        if outcome.reservation is not None:
            calls.append(self.settle_call(outcome.reservation, outcome.taken))
        if outcome.event is not None:
            calls.append(self._event_call(*outcome.event))
        return all(answer == 1 for answer in self._scripts.together(*calls)[:fenced])

    def progress(self) -> Progress:
        """See `ports.state.Store.progress`."""
        oldest, read_at, (whole, micros) = self._scripts.together(
            ("ZRANGE", self._keys.needy, 0, 0, "WITHSCORES"), ("HGET", self._keys.switches, "read_at"), ("TIME",)
        )
        return Progress(
            now=whole + micros / 1e6,
            needy=NodeName(oldest[0].decode()) if oldest else None,
            needy_since=float(oldest[1]) / 1000 if oldest else None,
            read_at=seconds(read_at) if read_at else None,
        )

    def event(self, what: str, fields: Mapping[str, str | int | float]) -> None:
        """See `ports.state.Store.event`."""
        self._scripts.together(self._event_call(what, fields))

    def _event_call(self, what: str, fields: Mapping[str, str | int | float]) -> Command:
        words = [word for pair in {"what": what, **fields}.items() for word in pair]
        return ("XADD", self._keys.events, "MAXLEN", "~", EVENTS_KEPT, "*", *words)

    def events(self, *, after: str, limit: int) -> list[Event]:
        """See `ports.state.Store.events`."""
        with translated():
            entries = self._client.xrange(self._keys.events, min=f"({after}", count=limit)
        found = []
        for entry_id, values in cast("list[tuple[bytes, dict[bytes, bytes]]]", entries):
            fields = {key.decode(): value.decode() for key, value in values.items()}
            found.append(Event(id=entry_id.decode(), what=fields.pop("what"), fields=fields))
        return found

    def begin_epoch(self, known: str | None = None, *, quiet_seconds: float = 0.0) -> str:
        """See `ports.state.Store.begin_epoch`."""
        keys = [self._keys.epoch, self._keys.epoch_times]
        args = [uuid.uuid4().hex, known or "", milliseconds(quiet_seconds)]
        stands: bytes = self._scripts.run("begin_epoch", keys, args)
        return stands.decode()

    def had_predecessors(self, quiet_seconds: float) -> None:
        """See `ports.state.Store.had_predecessors`."""
        self._scripts.run("quieten", [self._keys.epoch_times], [milliseconds(quiet_seconds)])

    def take_slot(self, name: str, seconds: float) -> bool:
        """See `ports.state.Store.take_slot`."""
        with translated():
            return bool(self._client.set(self._keys.slot(name), 1, nx=True, px=round(seconds * 1000)))


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """A script answers a map as a flat list."""
    return zip(flat[::2], flat[1::2], strict=True)
