"""Facts: what is known of instances' interfaces, who may overwrite it, and what is to be read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.adapters.state.base import DAY_MS, Part, encode, milliseconds, seconds
from eni_tasks.adapters.state.connection import Command, translated
from eni_tasks.model.network import InstanceId, Interface, NodeName
from eni_tasks.ports.state import Facts, Outcome, Shown
from eni_tasks.ports.work import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FIELDS = ("interfaces", "described_at", "mutated_at", "version", "doubted_at", "in_air")
_decode_interfaces = msgspec.json.Decoder(tuple[Interface, ...]).decode


class InstanceFacts(Part):
    """The instances' part of the store."""

    def facts(self, instance_ids: Sequence[InstanceId]) -> dict[InstanceId, Facts]:
        """See `ports.state.Store.facts`; all in one round trip."""
        if not instance_ids:
            return {}
        with translated():
            pipe = self._client.pipeline(transaction=False)
            for instance_id in instance_ids:
                pipe.hmget(self._keys.facts(instance_id), FIELDS)
            answers = pipe.execute()
        found = (decode_facts(i, values) for i, values in zip(instance_ids, answers, strict=True))
        return {facts.instance_id: facts for facts in found if facts is not None}

    def facts_call(self, claim: Claim, outcome: Outcome) -> Command:
        """The command that writes what a mutation did to an instance."""
        interfaces = b"" if outcome.interfaces is None else encode(outcome.interfaces)
        args = [claim.fence, interfaces, int(outcome.doubt), DAY_MS]
        return self._scripts.call("record", [self._keys.facts(outcome.instance_id)], args)

    def merge(self, shown: Sequence[Shown], *, started_at: float) -> list[bool]:
        """See `ports.state.Store.merge`."""
        if not shown:
            return []
        began, settle = milliseconds(started_at), self._settle_ms
        calls = (
            self._scripts.call(
                "merge",
                [self._keys.facts(one.instance_id), self._keys.epoch_times],
                [encode(one.interfaces), began, one.version, int(one.doubt), settle, DAY_MS, int(one.served)],
            )
            for one in shown
        )
        return [answer == 1 for answer in self._scripts.together(*calls)]

    def note_inventory(self, started_at: float) -> None:
        """See `ports.state.Store.note_inventory`."""
        with translated():
            self._client.hset(self._keys.switches, "read_at", milliseconds(started_at))

    def note_reads(self, *, failed: bool) -> int:
        """See `ports.state.Store.note_reads`."""
        with translated():
            if failed:
                return int(self._client.hincrby(self._keys.switches, "unread", 1))
            self._client.hdel(self._keys.switches, "unread")
        return 0

    def drop_facts(self, instance_id: InstanceId) -> None:
        """See `ports.state.Store.drop_facts`."""
        with translated():
            self._client.delete(self._keys.facts(instance_id))

    def want_reads(self, names: Iterable[NodeName], *, delay_seconds: float = 0.0) -> None:
        """See `ports.state.Store.want_reads`."""
        wanted = list(names)
        if wanted:
            with translated():
                due = self._now_ms() + milliseconds(delay_seconds)
                self._client.zadd(self._keys.reads, dict.fromkeys(wanted, due))

    def retry_reads(
        self, nodes: Sequence[tuple[NodeName, InstanceId]], *, first_seconds: float, most_seconds: float
    ) -> None:
        """See `ports.state.Store.retry_reads`."""
        if nodes:
            keys = [self._keys.reads, *(self._keys.facts(instance_id) for _, instance_id in nodes)]
            head = [milliseconds(first_seconds), milliseconds(most_seconds), DAY_MS]
            self._scripts.run("retry_reads", keys, [*head, *(name for name, _ in nodes)])

    def take_reads(self, limit: int, *, lease_seconds: float) -> dict[NodeName, str]:
        """See `ports.state.Store.take_reads`."""
        answer = self._scripts.run("take_reads", [self._keys.reads], [limit, milliseconds(lease_seconds)])
        words = [word.decode() for word in answer]
        return {NodeName(name): ticket for name, ticket in zip(words[::2], words[1::2], strict=True)}

    def done_reads(self, taken: dict[NodeName, str]) -> None:
        """See `ports.state.Store.done_reads`."""
        if taken:
            self._scripts.run("done_read", [self._keys.reads], [word for pair in taken.items() for word in pair])

    def due_reads(self) -> int:
        """See `ports.state.Store.due_reads`."""
        with translated():
            return int(self._client.zcount(self._keys.reads, "-inf", self._now_ms()))

    def _now_ms(self) -> int:
        whole, micros = self._client.time()
        return int(whole) * 1000 + int(micros) // 1000


def decode_facts(instance_id: InstanceId, values: Sequence[bytes | None]) -> Facts | None:
    """Read the fields of a facts hash; None where nothing was ever read well."""
    interfaces, described_at, mutated_at, version, doubted_at, in_air = values
    if interfaces is None:
        return None
    return Facts(
        instance_id=instance_id,
        interfaces=_decode_interfaces(interfaces),
        described_at=seconds(described_at),
        mutated_at=seconds(mutated_at),
        version=int(version or 0),
        doubted_at=seconds(doubted_at),
        in_air=in_air is not None,
    )
