"""The work queue: enqueue, claim, renew, finish, requeue. The rules of client-go's work queue, made distributed.

All times are Redis' own. Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import NODE_WORK, Claim, Finished, Pass, WorkKind
from eni_tasks.state import commands
from eni_tasks.state.connection import PORTION_COUNT, Connection, milliseconds
from eni_tasks.state.decoding import text


class WorkQueue:
    """Work of all kinds.

    Args:
        connection: the way to Redis.
        lease_seconds: how long a claim lives without renewal.
        overdue_seconds: a message that no worker has taken by then is sent again.
    """

    def __init__(self, connection: Connection, *, lease_seconds: float, overdue_seconds: float) -> None:
        self._connection = connection
        self._keys = connection.keys
        self.lease_ms = milliseconds(lease_seconds)
        self.overdue_ms = milliseconds(overdue_seconds)

    def enqueue(
        self,
        kind: WorkKind,
        items: Iterable[commands.Item],
        *,
        delay_seconds: float = 0.0,
        ends_wait: bool = False,
        stored_only: bool = False,
    ) -> list[str]:
        """Enqueue work; one round trip per 200 pieces.

        Args:
            kind: which work.
            items: names with their urgency.
            delay_seconds: the work is not due before now plus this; only for work that is not pending yet.
            ends_wait: this ends a back-off or another wait.
            stored_only: leave out nodes that are not stored (any more).

        Returns:
            The names for which a message must be sent; the others are merged into work that is pending.
        """
        wanted = list(items)
        to_send: list[str] = []
        for start in range(0, len(wanted), PORTION_COUNT):
            (answer,) = self._connection.send(
                commands.enqueue(
                    self._keys,
                    kind,
                    wanted[start : start + PORTION_COUNT],
                    overdue_ms=self.overdue_ms,
                    delay_ms=milliseconds(delay_seconds),
                    ends_wait=ends_wait,
                    stored_only=stored_only,
                )
            )
            to_send += [text(name) for name in answer]
        return to_send

    def claim(self, kind: WorkKind, name: NodeName | Pass) -> Claim | None:
        """Claim work for the lease. Work that was not enqueued can be claimed, too.

        Returns:
            The claim; None while another live claim holds the work.
        """
        token = new_token()
        (answer,) = self._connection.send(commands.claim(self._keys, kind, name, token, lease_ms=self.lease_ms))
        return decode_claim(kind, name, token, answer)

    def renew(self, claims: Sequence[Claim]) -> list[Claim]:
        """Extend one's own live leases; returns the claims that have ended."""
        if not claims:
            return []
        keys = [key for c in claims for key in (self._keys.work(c.kind, c.name), self._keys.pending(c.kind))]
        pairs = [word for c in claims for word in (c.name, c.token)]
        answer = self._connection.run("renew", keys, [self.lease_ms, *pairs])
        return [claim for claim, held in zip(claims, answer, strict=True) if not held]

    def finish(self, claim: Claim, *, again_after_seconds: float | None = None) -> Finished:
        """End a claim.

        Args:
            claim: the claim.
            again_after_seconds: None when the run left nothing to do; 0 to continue at once; more to wait.
                Work that was enqueued during the run (None), or in a way that ends a wait, means SEND.
        """
        (answer,) = self._connection.send(
            commands.finish(self._keys, claim, again_after_seconds=again_after_seconds, overdue_ms=self.overdue_ms)
        )
        return Finished(text(answer))

    def requeue_overdue(self, kind: WorkKind, limit: int) -> list[str]:
        """Take at most `limit` overdue pieces of work that no live claim holds, most urgent first, to send again."""
        args = [self._keys.work(kind, ""), limit, self.overdue_ms]
        return [text(name) for name in self._connection.run("requeue", [self._keys.pending(kind)], args)]

    def remove(self, name: NodeName) -> None:
        """Delete all work on a node that no longer exists; a claim that is still held turns stale."""
        with self._connection.translated():
            pipe = self._connection.client.pipeline(transaction=True)
            for kind in NODE_WORK:
                pipe.delete(self._keys.work(kind, name))
                pipe.zrem(self._keys.pending(kind), name)
            pipe.zrem(self._keys.deficits, name)
            pipe.execute()

    def end_claim(self, kind: WorkKind, name: NodeName | Pass) -> float | None:
        """End a claim now, live or not; its holder is refused the next mutation.

        Returns:
            The seconds that its lease still had (negative: it had run out), or None if there was no claim.
        """
        left_ms = self._connection.run("end_claim", [self._keys.work(kind, name), self._keys.pending(kind)], [name])
        return None if left_ms is None else int(left_ms) / 1000


def new_token() -> str:
    """A token that no other claim has."""
    return uuid.uuid4().hex


def decode_claim(kind: WorkKind, name: NodeName | Pass, token: str, answer: Sequence[int] | None) -> Claim | None:
    """Decode the answer of claim.lua."""
    if answer is None:
        return None
    fence, revision, woken = answer
    return Claim(kind=kind, name=name, token=token, fence=fence, revision=revision, wake=woken == 1)
