"""Writing what is known of a node into its CiliumNode, one write after the other, all from one state.

Compared with the object that the watcher stored; nothing is written if nothing differs. If a write fails, the ones
after it are not made: what each version of the object shows stays consistent.
"""

from __future__ import annotations

import random

from eni_tasks.domain.node_events import node_events
from eni_tasks.domain.status import next_write
from eni_tasks.errors import ClusterRefused, ClusterUnavailable, ConflictError, NodeGone
from eni_tasks.model.cilium_node import version_key
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Policy
from eni_tasks.model.node_event import NodeEvent
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import Claim, WorkKind
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import CiliumNodes
from eni_tasks.services.ingest import Ingest
from eni_tasks.services.tell import Teller
from eni_tasks.services.work import Report, Work
from eni_tasks.state import State
from eni_tasks.state.runs import RunEnd

MAX_TRIES = 3
MOST_WRITES = 12  # of a run: an object is complete after three, unless others keep changing it
CONFLICT_WAIT_SECONDS = (0.5, 3.0)
OUTAGE_WAIT_SECONDS = (5.0, 15.0)
REFUSED_WAIT_SECONDS = (30.0, 60.0)


class Publish:
    """Writes one node's object.

    Args:
        state: the shared state.
        work: claims and ends runs.
        nodes: the API server.
        ingest: takes in the answers.
        policy: what the settings decide for all nodes.
        teller: tells people of nodes, if they want to be told.
    """

    def __init__(  # noqa: PLR0913 - what a write needs, gathered once
        self,
        state: State,
        work: Work,
        nodes: CiliumNodes,
        ingest: Ingest,
        policy: Policy,
        teller: Teller | None = None,
    ) -> None:
        self._state = state
        self._work = work
        self._nodes = nodes
        self._ingest = ingest
        self._policy = policy
        self._teller = teller

    def run(self, name: NodeName) -> Report:
        """Write what differs; see `Work.run_for_node`."""
        return self._work.run_for_node(WorkKind.PUBLISH, name, self._write_and_report)

    def _write_and_report(self, claim: Claim, state: NodeState, report: Report) -> RunEnd:
        wrote: list[str] = []
        report["wrote"] = wrote
        events = self._events(state)
        try:
            self._write(claim, state, wrote)
        except NodeGone:
            self._state.nodes.remove(claim.node)
            raise
        except ConflictError as error:
            return _not_written(report, error, _between(CONFLICT_WAIT_SECONDS))
        except ClusterUnavailable as error:
            return _not_written(report, error, max(error.retry_after_seconds or 0.0, _between(OUTAGE_WAIT_SECONDS)))
        except ClusterRefused as error:
            return _not_written(report, error, _between(REFUSED_WAIT_SECONDS))
        if self._teller:
            self._teller.tell(events)
        return RunEnd(publish_failure="")

    def _events(self, state: NodeState) -> tuple[NodeEvent, ...]:
        """Find what is to be told, before the write: what is new is seen in the object as it was."""
        try:
            return node_events(state, self._policy) if self._teller else ()
        except Exception:  # noqa: BLE001 - logged with its trace
            # Whatever is wrong with what is told, the object is written.
            logger().exception("event_not_written")
            return ()

    def _write(self, claim: Claim, state: NodeState, wrote: list[str]) -> None:
        """Write status and spec; on a conflict read the object again, MAX_TRIES times."""
        name = state.node.name
        for tries_left in reversed(range(MAX_TRIES)):
            if not state.has_something_to_show:
                return  # unknown is not zero: the read that is due enqueues the node again
            try:
                self._write_once(claim, state, wrote)
            except ConflictError:
                self._take_in_fresh(state)
                if not tries_left:
                    raise
                state = self._state.nodes.read(name)
            else:
                return

    def _take_in_fresh(self, state: NodeState) -> None:
        """Read the object, and store it; one that is older than what is stored shows that etcd was restored."""
        fresh = self._nodes.get(state.node.name)
        known, read = state.obj.metadata.resource_version, fresh.metadata.resource_version
        self._ingest.changed([fresh], went_back=version_key(read) < version_key(known))

    def _write_once(self, claim: Claim, state: NodeState, wrote: list[str]) -> None:
        name, obj = state.node.name, state.obj
        try:
            while write := next_write(obj, state, self._policy):
                if len(wrote) >= MOST_WRITES:
                    raise ConflictError(f"CiliumNode {name}: it still differs after {MOST_WRITES} writes")
                self._work.leases.check(claim)
                patch = self._nodes.patch_status if write.to_status else self._nodes.patch_spec
                obj = patch(name, write.operations)
                wrote.append("status" if write.to_status else "spec")
        finally:
            if obj is not state.obj:
                # The answer is taken in like anything that the watcher sees, and earlier. Then neither the next
                # run nor the watch finds a difference in it, and what others changed meanwhile is not missed.
                self._ingest.changed([obj])


def _not_written(report: Report, error: Exception, again_after_seconds: float) -> RunEnd:
    report["failed"] = str(error)
    logger().warning("object_not_written", error=str(error), again_after_seconds=round(again_after_seconds, 1))
    return RunEnd(publish_failure=str(error), again_after_seconds=again_after_seconds)


def _between(bounds: tuple[float, float]) -> float:
    return random.uniform(*bounds)  # noqa: S311 - jitter, no secret
