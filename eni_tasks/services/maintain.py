"""One run for one node: claim → gather → plan → act → record, until there is nothing left to do.

A run ends when the plan has no action, after MAX_ACTIONS, or when something refuses. Whatever
happens, the claim is given back: there is no way out that leaves a node waiting for ever.
"""

from __future__ import annotations

import random
import threading
import time
from itertools import count
from typing import Any

import msgspec
import structlog

from eni_tasks.domain.planner import plan
from eni_tasks.domain.status import writes
from eni_tasks.errors import Ec2Error, InvalidInput, LeaseLost, NodeGone
from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node import Memory, Policy
from eni_tasks.model.plan import Assign, MarkInterface, Plan, Reason, Urgency
from eni_tasks.observability.logs import logger
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.runs import Runs
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import Claim, Finished, Work, WorkKind
from eni_tasks.services.assigning import Assigner
from eni_tasks.services.creating import Creator
from eni_tasks.services.dispatch import Dispatch
from eni_tasks.services.gather import Gathered, gather, instance_of, understood, with_memory
from eni_tasks.services.keeper import Keeper
from eni_tasks.services.mutating import AddressesTaken, Postponed
from eni_tasks.services.step import Step

MAX_ACTIONS = 8
DEADLINE_SECONDS = 90.0
BACK_OFF_BASE_SECONDS = 1.0
BACK_OFF_MOST_SECONDS = 300.0
QUIET_SECONDS = 600.0  # after this long without failure the back-off begins anew


class End(Value, frozen=True):
    """How a run ends: see `Runs.end`."""

    memory: Memory | None = None
    publish: Urgency | None = None
    needy: bool | None = None
    again_after_seconds: float | None = None


class Maintain:
    """Brings one node's pool to size.

    A process that is `stopping` ends its runs between two steps; another worker goes on.
    """

    def __init__(  # noqa: PLR0913 - the joint hands in every part once
        self,
        store: Store,
        work: Work,
        runs: Runs,
        dispatch: Dispatch,
        keeper: Keeper,
        assigner: Assigner,
        creator: Creator,
        policy: Policy,
        stopping: threading.Event,
        meter: Meter,
    ) -> None:
        self._store = store
        self._runs = runs
        self._stopping = stopping
        self._meter = meter
        self._work = work
        self._dispatch = dispatch
        self._keeper = keeper
        self._assigner = assigner
        self._creator = creator
        self._policy = policy

    def run(self, name: NodeName) -> dict[str, Any]:
        """Do what the node needs now.

        Args:
            name: the node.

        Returns:
            A short report for people: what was done, and why no more.

        Raises:
            StateUnavailable: Redis did not answer; the lease runs out and the node is swept.
        """
        begun = self._runs.begin(WorkKind.MAINTAIN, name)
        if begun is None:
            return {"node": name, "skipped": "another worker holds this node; its run will see the news"}
        claim, world = begun
        with structlog.contextvars.bound_contextvars(node=name, instance=instance_of(world)), self._keeper.hold(claim):
            report: dict[str, Any] = {"node": name}
            end = End()
            try:
                end = self._steps(claim, understood(name, world), report)
            except NodeGone as error:
                self._work.forget(name)
                report["skipped"] = str(error)
            except InvalidInput as error:
                # Only the object itself can mend this; its next change is news.
                logger().warning("node_not_understood", error=str(error))
                report["failed"] = str(error)
            except LeaseLost as error:
                logger().warning("claim_lost", error=str(error))
                report["skipped"] = str(error)
            finished = self._dispatch.end(
                claim,
                memory=end.memory,
                publish=end.publish,
                needy=end.needy,
                again_after_seconds=end.again_after_seconds,
            )
            if finished is Finished.WAITING:
                report["again_after_seconds"] = end.again_after_seconds
        return report

    def _steps(self, claim: Claim, gathered: Gathered, report: dict[str, Any]) -> End:
        """Take steps until one stops, and say how the run ends."""
        did: list[str] = []
        report["did"] = did
        stored = gathered.stored
        if claim.news:
            memory = msgspec.structs.replace(gathered.snapshot.memory, not_running_until=0.0)
            gathered = with_memory(gathered, memory)
        ends_at, publish = time.monotonic() + DEADLINE_SECONDS, None
        for taken in count(1):
            decision = plan(gathered.snapshot, self._policy, gathered.now)
            step = self._step(claim, gathered, decision)
            did += [step.did] if step.did else []
            report["reason"], report["explanation"] = decision.reason.value, list(decision.explanation)
            memory, again = _learned(gathered, decision, step)
            if self._to_be_shown(gathered, decision, step, memory):
                publish = decision.urgency
            over = taken == MAX_ACTIONS or time.monotonic() > ends_at or self._stopping.is_set()
            if step.stop or over:
                return End(
                    memory=memory if memory != stored else None,
                    publish=publish,
                    needy=_needy(gathered, decision),
                    again_after_seconds=again if step.stop else 0.0,
                )
            gathered, at_rest = self._next(claim, gathered, step, memory)
            if publish is Urgency.EMPTY and not at_rest:
                # Pods wait: what there is so far is shown before the next interface is made.
                self._dispatch.mark(WorkKind.PUBLISH, [(claim.name, publish)], ends_wait=True)
                publish = None
        raise AssertionError("the loop returns")

    def _next(self, claim: Claim, gathered: Gathered, step: Step, memory: Memory) -> tuple[Gathered, bool]:
        """What the next step looks at, and whether it will find nothing to do.

        After a change the facts are EC2's own answer under our claim: if they are enough, the state need
        not be read again, since news that came meanwhile raised the generation and brings another run.
        """
        if step.interfaces is not None:
            after = with_memory(gathered, memory, step.interfaces)
            decision = plan(after.snapshot, self._policy, after.now)
            if decision.action is None and not decision.blocked:
                return after, True
        return with_memory(gather(self._store, claim.name), memory), False

    def _step(self, claim: Claim, gathered: Gathered, decision: Plan) -> Step:
        try:
            return self._act(claim, gathered, decision)
        except AddressesTaken as error:
            return Step(did=str(error))
        except Postponed as error:
            return Step(stop=True, again_after_seconds=error.retry_after_seconds, did=str(error))
        except Ec2Error as error:
            # A read on the way (looking where an interface went) failed: the journal keeps the place.
            return Step(stop=True, failed=True, trouble=str(error))

    def _act(self, claim: Claim, gathered: Gathered, decision: Plan) -> Step:
        urgent = decision.urgency is Urgency.EMPTY
        if gathered.journal is not None:
            return self._creator.resume(claim, gathered, gathered.journal, urgent=urgent)
        if decision.action is None:
            return self._at_rest(claim, gathered, decision)
        if isinstance(decision.action, MarkInterface):
            return self._creator.mark(claim, gathered, decision.action)
        began_at = time.monotonic()
        if isinstance(decision.action, Assign):
            kind, step = "allocateIP", self._assigner.run(claim, gathered, decision.action, urgent=urgent)
        else:
            kind = "createInterfaceAndAllocateIP"
            step = self._creator.begin(claim, gathered, decision.action, urgent=urgent)
        status = "success" if step.changed else "failed"
        labels = {"type": kind, "status": status, "subnet_id": decision.action.subnet_id}
        self._meter.observe("ipam_allocation_duration_seconds", labels, time.monotonic() - began_at)
        return step

    def _at_rest(self, claim: Claim, gathered: Gathered, decision: Plan) -> Step:
        unasked = decision.reason is Reason.LIMITS_UNKNOWN and not gathered.limits_asked
        if decision.reason is Reason.NOT_READ or unasked:
            self._store.want_reads([claim.name])
        if decision.reason is Reason.NOT_RUNNING:
            wait = gathered.snapshot.memory.not_running_until - gathered.now + 1.0
            return Step(stop=True, again_after_seconds=wait, trouble=decision.explanation[-1])
        return Step(stop=True, trouble=decision.explanation[-1] if decision.blocked else "")

    def _to_be_shown(self, gathered: Gathered, decision: Plan, step: Step, memory: Memory) -> bool:
        """Say whether the object is to be written now."""
        if step.changed:
            return step.stop or decision.urgency is Urgency.EMPTY
        if not step.stop or gathered.snapshot.interfaces is None:
            return False
        # Compared instead of remembered: this run ends what one that died may have begun.
        snapshot = msgspec.structs.replace(gathered.snapshot, memory=memory)
        return any(writes(gathered.obj, snapshot, self._policy))


def _needy(gathered: Gathered, decision: Plan) -> bool | None:
    """Say whether the node lacks addresses that it could have; None if its facts are unknown."""
    if gathered.snapshot.interfaces is None:
        return None
    return decision.figures.needed > 0 and decision.reason is not Reason.AT_CAPACITY


def _learned(gathered: Gathered, decision: Plan, step: Step) -> tuple[Memory, float | None]:
    """What the next run, the object and people should know; and the wait."""
    before = gathered.snapshot.memory
    memory = step.memory or before
    again = step.again_after_seconds
    if step.failed:
        recent = gathered.now - memory.failed_at < QUIET_SECONDS
        failures = memory.failures + 1 if recent else 1
        memory = msgspec.structs.replace(memory, failures=failures, failed_at=gathered.now)
        again = again if again is not None else _back_off_seconds(failures)
    elif step.changed:
        memory = msgspec.structs.replace(memory, failures=0)
    memory = msgspec.structs.replace(
        memory,
        reasons=decision.explanation,
        last_action=step.did or memory.last_action,
        trouble=step.trouble if step.stop else memory.trouble,
    )
    return memory, again


def _back_off_seconds(failures: int) -> float:
    """Base 1 s, factor 2, full jitter above the half, at most 5 min."""
    most = min(BACK_OFF_MOST_SECONDS, BACK_OFF_BASE_SECONDS * 2.0 ** min(failures - 1, 12))
    return most * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
