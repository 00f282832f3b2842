"""The work queue as one process uses it: entries in Redis, messages to workers, and the frame of every run.

An entry and its message always go together. A message that cannot be sent is no loss: the entry stays in Redis,
and overdue work is requeued.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import structlog

from eni_tasks.errors import InvalidInput, LeaseLost, NodeGone, StateUnavailable
from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import Claim, Finished, Pass, WorkKind
from eni_tasks.observability.counters import Counters
from eni_tasks.observability.logs import logger
from eni_tasks.ports.messages import Messages
from eni_tasks.services.lease_renewer import LeaseRenewer, local_seconds
from eni_tasks.state import State
from eni_tasks.state.nodes import known
from eni_tasks.state.runs import NewObjects, RunEnd

Report = dict[str, Any]

FAULT_WAIT_SECONDS = 30.0

PASS_URGENCY = {Pass.INVENTORY: Urgency.DEFICIT, Pass.INSTANCES: Urgency.DEFICIT, Pass.ORPHANS: Urgency.CLEANUP}


class Work:
    """Enqueues, claims and finishes work.

    Args:
        state: the shared state.
        messages: how messages reach workers (Celery's business).
        counters: what the process counts into.
    """

    def __init__(self, state: State, messages: Messages, counters: Counters) -> None:
        self._state = state
        self._messages = messages
        self._counters = counters
        self.leases = LeaseRenewer(state.queue)

    # -- enqueuing -------------------------------------------------------------------------------
    def enqueue(self, kind: WorkKind, items: Iterable[tuple[NodeName, Urgency]], *, ends_wait: bool = False) -> int:
        """Enqueue work on nodes, and send a message for each node that was not pending yet.

        Args:
            kind: which work.
            items: names with their urgency, in the order in which they are to be served.
            ends_wait: whether this ends a back-off.

        Returns:
            The number of messages sent.
        """
        wanted = list(items)
        to_send = self._state.queue.enqueue(kind, wanted, ends_wait=ends_wait, stored_only=True)
        self._count(kind, sent=len(to_send), merged=len(wanted) - len(to_send))
        return self._send(kind, to_send)

    def enqueue_pass(self, which: Pass, *, ends_wait: bool = False) -> None:
        """Enqueue a pass over the fleet; the instances read are those requested with `ReadRequests.request`."""
        to_send = self._state.queue.enqueue(WorkKind.FLEET, [(which, PASS_URGENCY[which])], ends_wait=ends_wait)
        self._count(WorkKind.FLEET, sent=len(to_send), merged=1 - len(to_send))
        self._send(WorkKind.FLEET, to_send)

    def collect_orphans(self, removed: Collection[InstanceId] = ()) -> None:
        """Enqueue a pass of the orphan collector.

        Args:
            removed: instances whose node was removed; what was created for them has a shorter grace period.
        """
        if removed:
            self._state.orphans.note_removed(removed)
        self.enqueue_pass(Pass.ORPHANS, ends_wait=True)

    def store(self, new: NewObjects) -> None:
        """Store objects with what follows from them (see `Runs.store`), and send the messages."""
        to_send = self._state.runs.store(new)
        for kind, items in ((WorkKind.MAINTAIN, new.maintain), (WorkKind.PUBLISH, new.publish)):
            self._count(kind, sent=len(to_send[kind]), merged=len(items) - len(to_send[kind]))
            self._send(kind, to_send[kind])

    def requeue_overdue(self, limit: int) -> int:
        """Send again, at most `limit` per kind, what is overdue; returns how many."""
        return sum(self._send(kind, self._state.queue.requeue_overdue(kind, limit)) for kind in WorkKind)

    # -- runs ------------------------------------------------------------------------------------
    def run_for_node(self, kind: WorkKind, name: NodeName, run: Callable[[Claim, NodeState, Report], RunEnd]) -> Report:
        """Claim a node, do its work while the lease is renewed, and end the claim.

        Args:
            kind: which work.
            name: the node.
            run: does the work and adds to the report; it may raise NodeGone, InvalidInput or LeaseLost.

        Returns:
            A short report for people: what was done, and why no more.

        Raises:
            StateUnavailable: Redis did not answer; the lease runs out and the work is requeued.
        """
        asked_at = local_seconds()
        begun = self._state.runs.begin(kind, name)
        if begun is None:
            return {"node": name, "skipped": "another worker holds this node; its run will see the change"}
        claim, state = begun
        report: Report = {"node": name}
        end = RunEnd()
        instance = state.node.instance_id if isinstance(state, NodeState) else ""
        with structlog.contextvars.bound_contextvars(node=name, instance=instance), self.leases.hold(claim, asked_at):
            try:
                end = run(claim, known(state), report)
            except NodeGone as error:
                self._state.queue.remove(name)
                report["skipped"] = str(error)
            except InvalidInput as error:
                # Only a change of the object helps, and that enqueues the node again.
                logger().warning("node_not_understood", error=str(error))
                report["failed"] = str(error)
            except LeaseLost as error:
                logger().warning("claim_lost", error=str(error))
                report["skipped"] = str(error)
                end = RunEnd(again_after_seconds=0.0)  # if no other worker has taken over yet, one does now
            except StateUnavailable:
                raise  # the claim can't be ended either
            except Exception:
                # A fault of this system: the node is given back at once, and tried again after a while.
                logger().exception("run_failed", kind=kind)
                self._end(claim, RunEnd(again_after_seconds=FAULT_WAIT_SECONDS))
                raise
            if self._end(claim, end) is Finished.WAITING:
                report["again_after_seconds"] = end.again_after_seconds
        return report

    def run_pass(self, which: Pass, run: Callable[[Claim, Report], float | None]) -> Report:
        """Claim a pass, make it while the lease is renewed, and end the claim.

        Args:
            which: the pass.
            run: makes it and adds to the report; returns when the next one is wanted, in seconds (None: the
                periodic one will do). It may raise LeaseLost.

        Raises:
            StateUnavailable: Redis did not answer; the lease runs out and the pass is requeued.
        """
        asked_at = local_seconds()
        claim = self._state.queue.claim(WorkKind.FLEET, which)
        if claim is None:
            return {"skipped": "another worker makes this pass already"}
        report: Report = {}
        again: float | None = None
        with self.leases.hold(claim, asked_at):
            try:
                again = run(claim, report)
            except LeaseLost as error:
                logger().warning("claim_lost", error=str(error))
                report["stopped"] = str(error)
            except StateUnavailable:
                raise  # the claim can't be ended either
            except Exception:
                logger().exception("run_failed", name=which)
                self._state.queue.finish(claim, again_after_seconds=FAULT_WAIT_SECONDS)
                raise
        if self._state.queue.finish(claim, again_after_seconds=again) is Finished.SEND:
            self._send(claim.kind, [claim.name])
        return report

    def _end(self, claim: Claim, end: RunEnd) -> Finished:
        """End a run, and send the messages for what follows it."""
        ended = self._state.runs.end(claim, end)
        if end.publish is not None:
            self._count(WorkKind.PUBLISH, sent=int(ended.publish), merged=int(not ended.publish))
        if ended.publish:
            self._send(WorkKind.PUBLISH, [claim.name])
        if ended.finished is Finished.SEND:
            self._send(claim.kind, [claim.name])
        return ended.finished

    def _send(self, kind: WorkKind, names: Iterable[str]) -> int:
        """Send one message per name; returns how many were sent."""
        sent = 0
        try:
            for name in names:
                if kind is WorkKind.FLEET and name not in set(Pass):
                    continue  # another version's pass
                self._messages.send(kind, Pass(name) if kind is WorkKind.FLEET else NodeName(name))
                sent += 1
        except StateUnavailable as error:
            logger().warning("messages_not_sent", kind=kind, sent=sent, error=str(error))
        return sent

    def _count(self, kind: WorkKind, *, sent: int, merged: int) -> None:
        self._counters.count("enqueued_total", {"kind": kind, "outcome": "sent"}, sent)
        self._counters.count("enqueued_total", {"kind": kind, "outcome": "merged"}, merged)
