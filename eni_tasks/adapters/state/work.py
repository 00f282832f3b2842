"""Mark, claim, renew, finish, sweep: `ports.work.Work` on Redis."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from eni_tasks.adapters.state.base import PORTION, milliseconds
from eni_tasks.adapters.state.connection import Command, Scripts, translated
from eni_tasks.model.network import NodeName
from eni_tasks.ports.work import Claim, Finished, WorkKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import redis

    from eni_tasks.adapters.state.keys import Keys
    from eni_tasks.model.plan import Urgency


class RedisWork:
    """The work protocol.

    Args:
        client: the connection.
        scripts: the operations.
        keys: names of the deployment.
        lease_seconds: how long a claim lives without renewal.
        overdue_seconds: after this a message that nobody served is sent again.
    """

    def __init__(
        self, client: redis.Redis, scripts: Scripts, keys: Keys, *, lease_seconds: float, overdue_seconds: float
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._keys = keys
        self._lease_ms = milliseconds(lease_seconds)
        self._overdue_ms = milliseconds(overdue_seconds)

    def mark(
        self,
        kind: WorkKind,
        marks: Iterable[tuple[NodeName, Urgency]],
        *,
        delay_seconds: float = 0.0,
        ends_wait: bool = False,
    ) -> list[NodeName]:
        """See `ports.work.Work.mark`; one round trip per 200 marks."""
        wanted = list(marks)
        to_send: list[NodeName] = []
        for start in range(0, len(wanted), PORTION):
            call = self.mark_call(
                kind, wanted[start : start + PORTION], delay_seconds=delay_seconds, ends_wait=ends_wait
            )
            to_send += [NodeName(name.decode()) for name in self._scripts.together(call)[0]]
        return to_send

    def mark_call(
        self,
        kind: WorkKind,
        marks: Sequence[tuple[NodeName, Urgency]],
        *,
        delay_seconds: float = 0.0,
        ends_wait: bool = False,
    ) -> Command:
        """The command that marks nodes; it answers the names to send."""
        keys = [self._keys.pending(kind), *(self._keys.work(kind, name) for name, _ in marks)]
        pairs = [word for name, urgency in marks for word in (name, int(urgency))]
        head = [self._overdue_ms, milliseconds(delay_seconds), int(ends_wait)]
        return self._scripts.call("mark", keys, [*head, *pairs])

    def claim(self, kind: WorkKind, name: NodeName) -> Claim | None:
        """See `ports.work.Work.claim`."""
        token, call = self.claim_call(kind, name)
        return self.claimed(kind, name, token, self._scripts.together(call)[0])

    def claim_call(self, kind: WorkKind, name: NodeName) -> tuple[str, Command]:
        """A claim's token, and the command that takes the node; `claimed` understands its answer."""
        token = uuid.uuid4().hex
        keys = [self._keys.work(kind, name), self._keys.pending(kind), self._keys.fence]
        return token, self._scripts.call("claim", keys, [name, token, self._lease_ms])

    @staticmethod
    def claimed(kind: WorkKind, name: NodeName, token: str, answer: Sequence[int] | None) -> Claim | None:
        """Read the answer of `claim_call`."""
        if answer is None:
            return None
        fence, generation, news = answer
        return Claim(kind=kind, name=name, token=token, fence=fence, generation=generation, news=news == 1)

    def renew(self, claims: Sequence[Claim]) -> list[Claim]:
        """See `ports.work.Work.renew`."""
        if not claims:
            return []
        keys = [key for c in claims for key in (self._keys.work(c.kind, c.name), self._keys.pending(c.kind))]
        pairs = [word for c in claims for word in (c.name, c.token)]
        answer = self._scripts.run("renew", keys, [self._lease_ms, *pairs])
        return [claim for claim, held in zip(claims, answer, strict=True) if not held]

    def finish(self, claim: Claim, *, again_after_seconds: float | None = None) -> Finished:
        """See `ports.work.Work.finish`."""
        return self.finished(self._scripts.together(self.finish_call(claim, again_after_seconds))[0])

    def finish_call(self, claim: Claim, again_after_seconds: float | None) -> Command:
        """The command that gives a node back; `finished` understands its answer."""
        again_ms = -1 if again_after_seconds is None else max(0, milliseconds(again_after_seconds))
        return self._scripts.call(
            "finish",
            [self._keys.work(claim.kind, claim.name), self._keys.pending(claim.kind)],
            [claim.name, claim.token, again_ms, self._overdue_ms],
        )

    @staticmethod
    def finished(answer: bytes) -> Finished:
        """Read the answer of `finish_call`."""
        return Finished(answer.decode())

    def sweep(self, kind: WorkKind, limit: int) -> list[NodeName]:
        """See `ports.work.Work.sweep`."""
        answer = self._scripts.run(
            "sweep", [self._keys.pending(kind)], [self._keys.work(kind, ""), limit, self._overdue_ms]
        )
        return [NodeName(name.decode()) for name in answer]

    def forget(self, name: NodeName) -> None:
        """See `ports.work.Work.forget`."""
        with translated():
            pipe = self._client.pipeline(transaction=True)
            for kind in (WorkKind.MAINTAIN, WorkKind.PUBLISH):  # REFRESH is named by flights, not by nodes
                pipe.delete(self._keys.work(kind, name))
                pipe.zrem(self._keys.pending(kind), name)
            pipe.zrem(self._keys.needy, name)
            pipe.execute()
