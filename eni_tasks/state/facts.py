"""Facts: what is known of instances' interfaces, and which write may replace it.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from eni_tasks.model.network import InstanceId, Interface
from eni_tasks.model.state import Facts, ReadResult
from eni_tasks.state.commands import FACTS_FIELDS, encode
from eni_tasks.state.connection import DAY_MS, Command, Connection, Script, milliseconds
from eni_tasks.state.decoding import decoded, number, prose
from eni_tasks.state.keys import Keys

PROBLEM_LONGEST = 300

_decode_times = msgspec.json.Decoder(dict[str, float]).decode
_decode_interfaces = msgspec.json.Decoder(tuple[Interface, ...]).decode


class FactsCache:
    """Facts by instance.

    Args:
        connection: the way to Redis.
        settle_seconds: EC2's reads may lag this long behind its answers to mutations.
    """

    def __init__(self, connection: Connection, *, settle_seconds: float) -> None:
        self._connection = connection
        self._keys = connection.keys
        self._settle_ms = milliseconds(settle_seconds)

    def get(self, instance_ids: Sequence[InstanceId]) -> dict[InstanceId, Facts]:
        """Facts of instances, in one round trip; one that was never read well is missing."""
        if not instance_ids:
            return {}
        began_at, *answers = self._connection.send(
            ("HGET", self._keys.generation_times, "began_at"),
            *(("HMGET", self._keys.facts(i), *FACTS_FIELDS) for i in instance_ids),
        )
        found = (decode_facts(self._keys, i, values, began_at) for i, values in zip(instance_ids, answers, strict=True))
        return {facts.instance_id: facts for facts in found if facts is not None}

    def merge(self, results: Sequence[ReadResult], *, started_at: float) -> list[bool]:
        """Accept what a describe call showed of several instances.

        A result is refused (False) if the read started before the last mutation ended plus the settle time, if
        it started before the last accepted read, or if the facts are no longer at the version that it was
        compared with. With `unconfirmed` the interfaces stay as they are. While it lacks something, a mutation
        whose outcome is unknown stays pending.

        Args:
            results: what the call showed, per instance.
            started_at: when it began, in Redis seconds.
        """
        if not results:
            return []
        began_ms, settle_ms = milliseconds(started_at), self._settle_ms
        scripts = (
            Script(
                "merge_facts",
                [self._keys.facts(one.instance_id), self._keys.generation_times],
                [
                    encode(one.interfaces),
                    began_ms,
                    one.version,
                    int(one.unconfirmed),
                    settle_ms,
                    DAY_MS,
                    int(one.served),
                    encode(one.lacking) if one.lacking else b"",
                ],
            )
            for one in results
        )
        return [answer == 1 for answer in self._connection.send(*scripts)]

    def note_problems(self, problems: Mapping[InstanceId, str]) -> None:
        """Store, per instance, why its last read could not be used; the next accepted one deletes it."""
        commands: list[Command] = []
        for instance_id, problem in problems.items():
            key = self._keys.facts(instance_id)
            commands += [("HSET", key, "problem", problem[:PROBLEM_LONGEST]), ("PEXPIRE", key, DAY_MS)]
        if commands:
            self._connection.send(*commands)

    def remove(self, instance_id: InstanceId) -> None:
        """Delete what is known of an instance."""
        self._connection.send(("DEL", self._keys.facts(instance_id)))


def decode_facts(
    keys: Keys, instance_id: InstanceId, values: Sequence[bytes | None], began_at: bytes | None
) -> Facts | None:
    """Decode the fields FACTS_FIELDS of a facts hash; None where nothing was ever read.

    Interfaces that can't be decoded count as outdated, until the next read replaces them.

    Args:
        keys: for the log.
        instance_id: whose facts they are.
        values: of the fields.
        began_at: when the state generation began, as it is stored.
    """
    interfaces, *times, mutation_pending, lacking, released, problem = values
    if interfaces is None and problem is None:
        return None
    key = keys.facts(instance_id)
    named = zip(FACTS_FIELDS[1:5], times, strict=True)
    described_at, mutated_at, version, unconfirmed_since = (number(f"{key} {field}", value) for field, value in named)
    known = decoded(f"{key} interfaces", interfaces, _decode_interfaces)
    generation_ms = number(f"{keys.generation_times} began_at", began_at)
    return Facts(
        instance_id=instance_id,
        interfaces=known or (),
        described_at=int(described_at) / 1000,
        mutated_at=int(mutated_at) / 1000,
        version=int(version),
        unconfirmed_since=int(unconfirmed_since) / 1000,
        mutation_pending=mutation_pending is not None,
        outdated=known is None or described_at < generation_ms,
        lacking=decoded(f"{key} lacking", lacking, _decode_times) or {},
        released=decoded(f"{key} released", released, _decode_times) or {},
        problem=prose(problem),
    )
