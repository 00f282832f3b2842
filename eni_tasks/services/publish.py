"""Writing what is known of a node into its CiliumNode: status first, then spec, from one snapshot.

Compared with the object that the watcher stored; nothing is written if nothing differs. If the
status write fails, spec is not written: agents drop a pool that names interfaces they don't see.
"""

from __future__ import annotations

import random
from typing import Any

import structlog

from eni_tasks.domain.status import writes
from eni_tasks.errors import ClusterRefused, ClusterUnavailable, ConflictError, InvalidInput, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Policy
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import CiliumNodes, KubeObject
from eni_tasks.ports.runs import Runs
from eni_tasks.ports.state import Store, World
from eni_tasks.ports.work import Work, WorkKind
from eni_tasks.services.dispatch import Dispatch
from eni_tasks.services.gather import Gathered, instance_of, understood
from eni_tasks.services.intake import Intake
from eni_tasks.services.keeper import Keeper

MAX_TRIES = 3
CONFLICT_WAIT_SECONDS = (0.5, 3.0)
OUTAGE_WAIT_SECONDS = (5.0, 15.0)
REFUSED_WAIT_SECONDS = (30.0, 60.0)


class Publish:
    """Writes one node's object."""

    def __init__(  # noqa: PLR0913 - the joint hands in every part once
        self,
        store: Store,
        work: Work,
        runs: Runs,
        dispatch: Dispatch,
        keeper: Keeper,
        nodes: CiliumNodes,
        intake: Intake,
        policy: Policy,
    ) -> None:
        self._store = store
        self._work = work
        self._runs = runs
        self._dispatch = dispatch
        self._keeper = keeper
        self._nodes = nodes
        self._intake = intake
        self._policy = policy

    def run(self, name: NodeName) -> dict[str, Any]:
        """Write what differs.

        Args:
            name: the node.

        Returns:
            A short report for people: which writes were made, or why none.

        Raises:
            StateUnavailable: Redis did not answer; the lease runs out and the node is swept.
        """
        begun = self._runs.begin(WorkKind.PUBLISH, name)
        if begun is None:
            return {"node": name, "skipped": "another worker holds this node; its run will see the news"}
        claim, world = begun
        report: dict[str, Any] = {"node": name, "wrote": []}
        again: float | None = None
        with structlog.contextvars.bound_contextvars(node=name, instance=instance_of(world)), self._keeper.hold(claim):
            try:
                self._write(name, world, report["wrote"])
            except NodeGone as error:
                report["skipped"] = str(error)
                if self._store.drop_node(name):
                    self._work.forget(name)
            except InvalidInput as error:
                report["failed"] = str(error)
            except ConflictError as error:
                again = _between(CONFLICT_WAIT_SECONDS)
                report["failed"] = str(error)
            except ClusterUnavailable as error:
                again = max(error.retry_after_seconds or 0.0, _between(OUTAGE_WAIT_SECONDS))
                report["failed"] = str(error)
            except ClusterRefused as error:
                again = _between(REFUSED_WAIT_SECONDS)
                report["failed"] = str(error)
            if "failed" in report:
                logger().warning(
                    "object_not_written", error=report["failed"], again_after_seconds=again and round(again, 1)
                )
            self._dispatch.end(claim, again_after_seconds=again)
        return report

    def _write(self, name: NodeName, world: World, wrote: list[str]) -> None:
        for tries_left in reversed(range(MAX_TRIES)):
            gathered = understood(name, world)
            if gathered.snapshot.interfaces is None:
                return  # unknown is not zero: the read that is due marks the node again
            try:
                self._write_once(name, gathered, wrote)
            except ConflictError:
                self._taken_in(self._nodes.get(name))
                if not tries_left:
                    raise
                world = self._store.gather(name)
            else:
                return

    def _write_once(self, name: NodeName, gathered: Gathered, wrote: list[str]) -> None:
        status, spec = writes(gathered.obj, gathered.snapshot, self._policy)
        obj: KubeObject | None = None
        try:
            if status:
                obj = self._nodes.patch_status(name, status)
                wrote.append("status")
                _, spec = writes(obj, gathered.snapshot, self._policy)
            if spec:
                obj = self._nodes.patch_spec(name, spec)
                wrote.append("spec")
        finally:
            if obj is not None:
                self._taken_in(obj)

    def _taken_in(self, obj: KubeObject) -> None:
        """Take the answer in like anything that the watcher sees, and earlier.

        Neither the next run nor the watcher's echo of it finds a difference then; and what others
        changed since we read it is news, which the watcher would pass over as older than this.
        """
        self._intake.changed([obj])


def _between(bounds: tuple[float, float]) -> float:
    return random.uniform(*bounds)  # noqa: S311 - jitter, no secret
