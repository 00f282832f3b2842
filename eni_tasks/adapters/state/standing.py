"""How single nodes stand: `ports.standing.Standings` on Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from eni_tasks.adapters.state.base import PORTION, redis_ms, seconds
from eni_tasks.adapters.state.connection import translated
from eni_tasks.model.network import NodeName
from eni_tasks.ports.standing import Doing, Standing
from eni_tasks.ports.work import WorkKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import redis

    from eni_tasks.adapters.state.keys import Keys
    from eni_tasks.model.network import InstanceId

FIELDS = ("lease", "not_before", "sent")
DOING = (Doing.RUNNING, Doing.WAITING, Doing.QUEUED)  # in the order of FIELDS


class RedisStandings:
    """Reads work hashes and the age of facts.

    Args:
        client: the connection.
        keys: names of the deployment.
    """

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def pending(self, kind: WorkKind) -> Mapping[NodeName, Standing]:
        """See `ports.standing.Standings.pending`."""
        with translated():
            names = cast("list[bytes]", self._client.zrange(self._keys.pending(kind), 0, -1))
        found: dict[NodeName, Standing] = {}
        for start in range(0, len(names), PORTION):
            portion = [NodeName(name.decode()) for name in names[start : start + PORTION]]
            found |= zip(portion, self._read([self._keys.work(kind, name) for name in portion]), strict=True)
        return found

    def of(self, name: NodeName) -> Mapping[WorkKind, Standing]:
        """See `ports.standing.Standings.of`."""
        kinds = (WorkKind.MAINTAIN, WorkKind.PUBLISH)
        with translated():
            pipe = self._client.pipeline(transaction=False)
            for kind in kinds:
                pipe.zscore(self._keys.pending(kind), name)
            there = pipe.execute()
        standings = self._read([self._keys.work(kind, name) for kind in kinds])
        return {
            kind: standing for kind, score, standing in zip(kinds, there, standings, strict=True) if score is not None
        }

    def described_at(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, float]:
        """See `ports.standing.Standings.described_at`."""
        found: dict[InstanceId, float] = {}
        for start in range(0, len(instance_ids), PORTION):
            portion = instance_ids[start : start + PORTION]
            with translated():
                pipe = self._client.pipeline(transaction=False)
                for instance_id in portion:
                    pipe.hget(self._keys.facts(instance_id), "described_at")
                answers = pipe.execute()
            found |= {i: seconds(answer) for i, answer in zip(portion, answers, strict=True) if answer}
        return found

    def _read(self, keys: list[str]) -> list[Standing]:
        with translated():
            pipe = self._client.pipeline(transaction=False)
            for key in keys:
                pipe.hmget(key, FIELDS)
            answers = pipe.execute()
            now = redis_ms(self._client) / 1000
        return [_standing([seconds(value) for value in answer], now) for answer in answers]


def _standing(times: Sequence[float], now: float) -> Standing:
    for doing, until in zip(DOING, times, strict=True):
        if until > now:
            return Standing(doing=doing, until=until)
    return Standing(doing=Doing.OVERDUE, until=max(times))
