"""Marking work and sending the hint that belongs to it: the two always go together.

A hint that cannot be sent is no loss: the mark stays, and `sweep` sends it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.observability.logs import logger
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.messages import Messages
from eni_tasks.ports.orphans import OrphanMemory
from eni_tasks.ports.runs import Runs
from eni_tasks.ports.work import Claim, Finished, Work, WorkKind

INVENTORY = NodeName("inventory")
INSTANCES = NodeName("instances")
ORPHANS = NodeName("orphans")


class Dispatch:
    """Marks in Redis, hints through the broker."""

    def __init__(self, work: Work, runs: Runs, messages: Messages, orphans: OrphanMemory, meter: Meter) -> None:
        self._work = work
        self._runs = runs
        self._messages = messages
        self._orphans = orphans
        self._meter = meter

    def mark(
        self,
        kind: WorkKind,
        marks: Iterable[tuple[NodeName, Urgency]],
        *,
        ends_wait: bool = False,
    ) -> int:
        """Mark nodes, and send a message for each that nothing waited for yet.

        Args:
            kind: which work.
            marks: names with their urgency, in the order in which they shall be served.
            ends_wait: whether the news ends a back-off.

        Returns:
            The number of messages sent.
        """
        wanted = list(marks)
        to_send = self._work.mark(kind, wanted, ends_wait=ends_wait)
        self._count(kind, sent=len(to_send), folded=len(wanted) - len(to_send))
        return self.send(kind, to_send)

    def refresh_inventory(self) -> None:
        """Ask for a read of everything."""
        self.mark(WorkKind.REFRESH, [(INVENTORY, Urgency.DEFICIT)], ends_wait=True)

    def refresh_instances(self) -> None:
        """Ask for a read of the instances that were noted with `Store.want_reads`."""
        self.mark(WorkKind.REFRESH, [(INSTANCES, Urgency.DEFICIT)])

    def collect_orphans(self, removed: Collection[InstanceId] = ()) -> None:
        """Ask for a look at interfaces that were left behind.

        Args:
            removed: instances whose node is gone: what was made for them has a shorter wait.
        """
        if removed:
            self._orphans.note_removed(removed)
        self.mark(WorkKind.REFRESH, [(ORPHANS, Urgency.CLEANUP)], ends_wait=True)

    def finish(self, claim: Claim, *, again_after_seconds: float | None = None) -> Finished:
        """Give a claim back, and send a message if more work came meanwhile."""
        finished = self._work.finish(claim, again_after_seconds=again_after_seconds)
        if finished is Finished.SEND:
            self.send(claim.kind, [claim.name])
        return finished

    def take_in(
        self,
        objects: Sequence[Mapping[str, Any]],
        *,
        reads: Sequence[NodeName],
        maintain: Sequence[tuple[NodeName, Urgency]],
        publish: Sequence[tuple[NodeName, Urgency]],
        needy: Sequence[NodeName],
    ) -> None:
        """Store objects with what follows from them (see `Runs.take_in`), and send the messages."""
        taken = self._runs.take_in(objects, reads=reads, maintain=maintain, publish=publish, needy=needy)
        for kind, marks, sent in (
            (WorkKind.MAINTAIN, maintain, taken.maintain),
            (WorkKind.PUBLISH, publish, taken.publish),
        ):
            self._count(kind, sent=len(sent), folded=len(marks) - len(sent))
        self.send(WorkKind.MAINTAIN, taken.maintain)
        self.send(WorkKind.PUBLISH, taken.publish)

    def end(
        self,
        claim: Claim,
        *,
        memory: Memory | None = None,
        publish: Urgency | None = None,
        needy: bool | None = None,
        again_after_seconds: float | None = None,
    ) -> Finished:
        """End a run (see `Runs.end`), and send the messages for what must follow it."""
        ended = self._runs.end(
            claim, memory=memory, publish=publish, needy=needy, again_after_seconds=again_after_seconds
        )
        if publish is not None:
            self._count(WorkKind.PUBLISH, sent=int(ended.publish), folded=int(not ended.publish))
        if ended.publish:
            self.send(WorkKind.PUBLISH, [claim.name])
        if ended.finished is Finished.SEND:
            self.send(claim.kind, [claim.name])
        return ended.finished

    def sweep(self, limit: int) -> int:
        """Send again, at most `limit` per kind, what was overdue; returns how many."""
        return sum(self.send(kind, self._work.sweep(kind, limit)) for kind in WorkKind)

    def send(self, kind: WorkKind, names: Iterable[NodeName]) -> int:
        """Send one hint per name; returns how many were sent."""
        sent = 0
        try:
            for name in names:
                self._messages.send(kind, name)
                sent += 1
        except StateUnavailable as error:
            logger().warning("hints_not_sent", kind=kind, sent=sent, error=str(error))
        return sent

    def _count(self, kind: WorkKind, *, sent: int, folded: int) -> None:
        self._meter.count("marks_total", {"kind": kind, "outcome": "sent"}, sent)
        self._meter.count("marks_total", {"kind": kind, "outcome": "folded"}, folded)
