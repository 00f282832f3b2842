"""`ports.state.Store` on Redis: the parts together, one node's world in two round trips, and coordination."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, cast

import msgspec

from eni_tasks.adapters.state.base import decode_object
from eni_tasks.adapters.state.connection import translated
from eni_tasks.adapters.state.facts import FIELDS, InstanceFacts, decode_facts
from eni_tasks.adapters.state.nodes import Nodes
from eni_tasks.adapters.state.shared import Shared, decode_limits
from eni_tasks.model.node import Memory
from eni_tasks.ports.state import Event, Facts, World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eni_tasks.model.network import InstanceId, Limits, NodeName

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
        keys = self._keys
        with translated():
            pipe = self._client.pipeline(transaction=False)
            pipe.hget(keys.nodes, name)
            pipe.hget(keys.memory, name)
            pipe.hget(keys.journal, name)
            pipe.hget(keys.infrastructure, "described_at")
            pipe.hgetall(keys.ledger)
            pipe.zrange(keys.benched, 0, -1, withscores=True)
            pipe.time()
            stored, memory, journal, stamp, ledger, benched, (whole, micros) = pipe.execute()
        now_ms = whole * 1000 + micros // 1000
        return World(
            obj=decode_object(stored) if stored else None,
            memory=_decode_memory(memory) if memory else Memory(),
            journal=journal,
            infrastructure=self._infrastructure_at(stamp),
            reserved={subnet.decode(): int(count) for subnet, count in ledger.items()},
            benched=frozenset(subnet.decode() for subnet, until in benched if until > now_ms),
            now=now_ms / 1000,
        )

    def details(self, instance_id: InstanceId, instance_type: str) -> tuple[Facts | None, Limits | None, bool]:
        """See `ports.state.Store.details`."""
        with translated():
            pipe = self._client.pipeline(transaction=False)
            pipe.hmget(self._keys.facts(instance_id), FIELDS)
            pipe.hget(self._keys.limits, instance_type)
            pipe.time()
            values, limits, (whole, micros) = pipe.execute()
        return decode_facts(instance_id, values), *decode_limits(limits, whole * 1000 + micros // 1000)

    def event(self, what: str, fields: Mapping[str, str | int | float]) -> None:
        """See `ports.state.Store.event`."""
        with translated():
            entry: dict[str, str | int | float] = {"what": what, **fields}
            self._client.xadd(self._keys.events, entry, maxlen=EVENTS_KEPT, approximate=True)  # type: ignore[arg-type]

    def events(self, *, after: str, limit: int) -> list[Event]:
        """See `ports.state.Store.events`."""
        with translated():
            entries = self._client.xrange(self._keys.events, min=f"({after}", count=limit)
        found = []
        for entry_id, values in cast("list[tuple[bytes, dict[bytes, bytes]]]", entries):
            fields = {key.decode(): value.decode() for key, value in values.items()}
            found.append(Event(id=entry_id.decode(), what=fields.pop("what"), fields=fields))
        return found

    def epoch(self) -> str | None:
        """See `ports.state.Store.epoch`."""
        with translated():
            value = cast("bytes | None", self._client.get(self._keys.epoch))
        return value.decode() if value else None

    def begin_epoch(self) -> str:
        """See `ports.state.Store.begin_epoch`."""
        mine = uuid.uuid4().hex
        with translated():
            before = cast("bytes | None", self._client.set(self._keys.epoch, mine, nx=True, get=True))
        return before.decode() if before else mine

    def take_slot(self, name: str, seconds: float) -> bool:
        """See `ports.state.Store.take_slot`."""
        with translated():
            return bool(self._client.set(self._keys.slot(name), 1, nx=True, px=round(seconds * 1000)))
