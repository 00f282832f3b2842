"""Beginning and ending runs: `ports.runs.Runs` on Redis, from the parts that work and store are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eni_tasks.adapters.state.base import PORTION
from eni_tasks.model.network import NodeName
from eni_tasks.ports.runs import Ended, TakenIn
from eni_tasks.ports.work import Claim, WorkKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from eni_tasks.adapters.state.connection import Command, Scripts
    from eni_tasks.adapters.state.store import RedisStore
    from eni_tasks.adapters.state.work import RedisWork
    from eni_tasks.model.node import Memory
    from eni_tasks.model.plan import Urgency
    from eni_tasks.ports.state import World


class RedisRuns:
    """One round trip where work and store would take several.

    Args:
        scripts: the operations.
        work: the work protocol.
        store: the nodes' worlds.
    """

    def __init__(self, scripts: Scripts, work: RedisWork, store: RedisStore) -> None:
        self._scripts = scripts
        self._work = work
        self._store = store

    def take_in(
        self,
        objects: Sequence[Mapping[str, Any]],
        *,
        reads: Sequence[NodeName] = (),
        maintain: Sequence[tuple[NodeName, Urgency]] = (),
        publish: Sequence[tuple[NodeName, Urgency]] = (),
        needy: Sequence[NodeName] = (),
    ) -> TakenIn:
        """See `ports.runs.Runs.take_in`."""
        maintained = [self._work.mark_call(WorkKind.MAINTAIN, part, ends_wait=True) for part in _portions(maintain)]
        published = [self._work.mark_call(WorkKind.PUBLISH, part, ends_wait=True) for part in _portions(publish)]
        calls = [*maintained, *published]
        if reads or needy:
            calls += self._store.noted_calls(reads, needy)
        calls += self._store.put_calls(objects)
        answers = self._scripts.together(*calls)
        return TakenIn(
            maintain=_names(answers[: len(maintained)]),
            publish=_names(answers[len(maintained) : len(maintained) + len(published)]),
        )

    def begin(self, kind: WorkKind, name: NodeName) -> tuple[Claim, World] | None:
        """See `ports.runs.Runs.begin`."""
        token, call = self._work.claim_call(kind, name)
        claimed, world = self._scripts.together(call, self._store.world_call(name))
        claim = self._work.claimed(kind, name, token, claimed)
        return None if claim is None else (claim, self._store.world(world))

    def end(
        self,
        claim: Claim,
        *,
        memory: Memory | None = None,
        publish: Urgency | None = None,
        needy: bool | None = None,
        again_after_seconds: float | None = None,
    ) -> Ended:
        """See `ports.runs.Runs.end`."""
        calls: list[Command] = []
        if memory is not None:
            calls.append(self._store.memory_call(claim, memory))
        if publish is not None:
            calls.append(self._work.mark_call(WorkKind.PUBLISH, [(claim.name, publish)], ends_wait=True))
        marked = len(calls) - 1
        if needy is not None:
            calls.append(self._store.needy_call(claim.name, needy=needy))
        calls.append(self._work.finish_call(claim, again_after_seconds))
        answers = self._scripts.together(*calls)
        return Ended(
            finished=self._work.finished(answers[-1]),
            publish=publish is not None and bool(answers[marked]),
        )


def _portions(marks: Sequence[tuple[NodeName, Urgency]]) -> Iterator[Sequence[tuple[NodeName, Urgency]]]:
    for start in range(0, len(marks), PORTION):
        yield marks[start : start + PORTION]


def _names(answers: Sequence[Sequence[bytes]]) -> tuple[NodeName, ...]:
    return tuple(NodeName(name.decode()) for answer in answers for name in answer)
