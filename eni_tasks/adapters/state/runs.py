"""Beginning and ending runs: `ports.runs.Runs` on Redis, from the parts that work and store are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.ports.runs import Ended
from eni_tasks.ports.work import Claim, WorkKind

if TYPE_CHECKING:
    from eni_tasks.adapters.state.connection import Command, Scripts
    from eni_tasks.adapters.state.store import RedisStore
    from eni_tasks.adapters.state.work import RedisWork
    from eni_tasks.model.network import NodeName
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
        again_after_seconds: float | None = None,
    ) -> Ended:
        """See `ports.runs.Runs.end`."""
        calls: list[Command] = []
        if memory is not None:
            calls.append(self._store.memory_call(claim, memory))
        if publish is not None:
            calls.append(self._work.mark_call(WorkKind.PUBLISH, [(claim.name, publish)], ends_wait=True))
        calls.append(self._work.finish_call(claim, again_after_seconds))
        answers = self._scripts.together(*calls)
        return Ended(
            finished=self._work.finished(answers[-1]),
            publish=publish is not None and bool(answers[-2]),
        )
