"""Facts: what is known of instances' interfaces, and which write may replace it.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from eni_tasks.model.network import InstanceId, Interface
from eni_tasks.model.state import Facts, ReadResult
from eni_tasks.state.commands import FACTS_FIELDS, encode
from eni_tasks.state.connection import DAY_MS, PORTION_COUNT, Command, Connection, Script, milliseconds, seconds

PROBLEM_LONGEST = 300

_decode_lacking = msgspec.json.Decoder(dict[str, float]).decode
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
        found = (
            decode_facts(i, values, generation_began_at=seconds(began_at))
            for i, values in zip(instance_ids, answers, strict=True)
        )
        return {facts.instance_id: facts for facts in found if facts is not None}

    def described_at(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, float]:
        """When the last accepted read of each instance began; one that was never read is missing."""
        found: dict[InstanceId, float] = {}
        for start in range(0, len(instance_ids), PORTION_COUNT):
            portion = instance_ids[start : start + PORTION_COUNT]
            answers = self._connection.send(*(("HGET", self._keys.facts(i), "described_at") for i in portion))
            found |= {i: seconds(answer) for i, answer in zip(portion, answers, strict=True) if answer}
        return found

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
    instance_id: InstanceId, values: Sequence[bytes | None], *, generation_began_at: float
) -> Facts | None:
    """Decode the fields FACTS_FIELDS of a facts hash; None where nothing was ever read."""
    interfaces, described_at, mutated_at, version, unconfirmed_since, mutation_pending, lacking, problem = values
    if interfaces is None and problem is None:
        return None
    return Facts(
        instance_id=instance_id,
        interfaces=_decode_interfaces(interfaces) if interfaces is not None else (),
        described_at=seconds(described_at),
        mutated_at=seconds(mutated_at),
        version=int(version or 0),
        unconfirmed_since=seconds(unconfirmed_since),
        mutation_pending=mutation_pending is not None,
        outdated=interfaces is None or seconds(described_at) < generation_began_at,
        lacking=_decode_lacking(lacking) if lacking else {},
        problem=problem.decode(errors="replace") if problem else "",
    )
