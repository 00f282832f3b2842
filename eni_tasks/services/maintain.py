"""One run for one node: claim, read, plan, act, record, repeated until there is nothing left to do.

A run ends when the plan has no action, after MAX_ACTIONS, or when something refuses. In every case the claim is
ended, so no node is left waiting.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import count

import msgspec

from eni_tasks.domain.creation import next_try_at
from eni_tasks.domain.node_state import after_change, with_memory
from eni_tasks.domain.planner import plan
from eni_tasks.domain.status import next_write
from eni_tasks.errors import Ec2Error
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Memory, Policy
from eni_tasks.model.plan import (
    Assign,
    AssignIpv6Prefix,
    AssociateAddress,
    Plan,
    Reason,
    SetDeleteOnTermination,
    Unassign,
    Urgency,
)
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import Claim, WorkKind
from eni_tasks.services.assign import assign_addresses
from eni_tasks.services.beside_pool import assign_ipv6_prefix, associate_address
from eni_tasks.services.create_interface import InterfaceCreator
from eni_tasks.services.mutate import AddressesTaken, Mutator, Postponed
from eni_tasks.services.refusals import Step
from eni_tasks.services.release import LastLook, release_addresses
from eni_tasks.services.work import Report, Work
from eni_tasks.state.runs import RunEnd

MAX_ACTIONS = 8
DEADLINE_SECONDS = 90.0
BACK_OFF_BASE_SECONDS = 1.0
BACK_OFF_LONGEST_SECONDS = 300.0
# Trouble of EC2, the account or the network: a node without a free address is soon served when it is over.
SHARED_LONGEST_SECONDS = {Urgency.EMPTY: 30.0}
SHARED_LONGEST_OTHERWISE_SECONDS = 120.0
SOON_SECONDS = 60.0
BACK_OFF_RESET_SECONDS = 600.0  # after this long without failure the back-off starts again at its base


class Maintain:
    """Brings one node's pool to size.

    When the process is asked to end, a run ends between two steps and another worker continues.

    Args:
        work: claims and ends runs.
        mutator: makes the calls.
        policy: what the settings decide for all nodes.
        last_look: gives the way to the API server, for releases only.
    """

    def __init__(self, work: Work, mutator: Mutator, policy: Policy, last_look: Callable[[], LastLook]) -> None:
        self._last_look = last_look
        self._state = mutator.state
        self._work = work
        self._mutator = mutator
        self._creator = InterfaceCreator(mutator)
        self._policy = policy

    def run(self, name: NodeName) -> Report:
        """Do what the node needs now; see `Work.run_for_node`."""
        return self._work.run_for_node(WorkKind.MAINTAIN, name, self._take_steps)

    def _take_steps(self, claim: Claim, state: NodeState, report: Report) -> RunEnd:
        """Take steps until one stops, and say how the run ends."""
        did: list[str] = []
        report["did"] = did
        stored_memory = state.stored_memory
        if claim.wake:
            state = with_memory(state, msgspec.structs.replace(state.memory, not_running_until=0.0))
        ends_at, publish = time.monotonic() + DEADLINE_SECONDS, None
        for taken in count(1):
            decision = plan(state, self._policy, state.now)
            step = self._take_step(claim, state, decision)
            did += [step.did] if step.did else []
            report["reason"] = decision.reason.value
            report["explanation"] = [*decision.explanation, *decision.troubles]
            memory, again = _learned(state, decision, step)
            if self._must_publish(state, decision, step, memory):
                publish = decision.urgency
            over = taken == MAX_ACTIONS or time.monotonic() > ends_at or self._mutator.stopping.is_set()
            if step.stop or over:
                return RunEnd(
                    memory=memory if memory != stored_memory else None,
                    publish=publish,
                    in_deficit=_in_deficit(state, decision),
                    again_after_seconds=_after_setback(memory, state, again) if step.stop else 0.0,
                )
            state, complete = self._next_state(state, step, memory)
            if publish is Urgency.EMPTY and not complete:
                # Pods wait: what there is so far is published before the next interface is created.
                self._work.enqueue(WorkKind.PUBLISH, [(claim.node, publish)], ends_wait=True)
                publish = None
        raise AssertionError("the loop returns")

    def _next_state(self, state: NodeState, step: Step, memory: Memory) -> tuple[NodeState, bool]:
        """Give the state that the next step looks at, and whether that step will find nothing to do.

        After a change the facts are EC2's own answer under this claim. If they are enough, the state is not read
        again: what was enqueued meanwhile raised the revision and brings another run.
        """
        if step.interfaces is not None:
            after = with_memory(after_change(state, step.interfaces), memory)
            decision = plan(after, self._policy, after.now)
            if decision.action is None and not decision.blocked:
                return after, True
        return with_memory(self._state.nodes.read(state.node.name), memory), False

    def _take_step(self, claim: Claim, state: NodeState, decision: Plan) -> Step:
        try:
            return self._act(claim, state, decision)
        except AddressesTaken as error:
            return Step(did=str(error))
        except Postponed as error:
            return Step(stop=True, again_after_seconds=error.retry_after_seconds, did=str(error), trouble=error.trouble)
        except Ec2Error as error:
            # A read on the way (looking where an interface is) failed: the journal keeps the place.
            return Step(stop=True, failed=True, shared=True, trouble=str(error))

    def _act(self, claim: Claim, state: NodeState, decision: Plan) -> Step:  # noqa: PLR0911 - one for each action
        urgent = decision.urgency is Urgency.EMPTY
        if state.journal is not None:
            return self._creator.resume(claim, state, state.journal, urgent=urgent)
        if decision.action is None:
            return self._rest(claim, state, decision)
        if isinstance(decision.action, SetDeleteOnTermination):
            return self._creator.set_delete_on_termination(claim, state, decision.action)
        if isinstance(decision.action, Unassign):
            memory = decision.release or state.memory.release
            return release_addresses(self._mutator, self._last_look(), claim, state, decision.action, memory)
        if isinstance(decision.action, AssignIpv6Prefix):
            return assign_ipv6_prefix(self._mutator, claim, state, decision.action, urgent=urgent)
        if isinstance(decision.action, AssociateAddress):
            return associate_address(self._mutator, claim, state, decision.action)
        began_at = time.monotonic()
        if isinstance(decision.action, Assign):
            kind, step = "allocateIP", assign_addresses(self._mutator, claim, state, decision.action, urgent=urgent)
        else:
            kind = "createInterfaceAndAllocateIP"
            step = self._creator.create(claim, state, decision.action, urgent=urgent)
        labels = {
            "type": kind,
            "status": "success" if step.changed else "failed",
            "subnet_id": decision.action.subnet_id,
        }
        self._mutator.counters.observe("ipam_allocation_duration_seconds", labels, time.monotonic() - began_at)
        return step

    def _rest(self, claim: Claim, state: NodeState, decision: Plan) -> Step:
        """End a run whose plan has no action."""
        unasked = decision.reason is Reason.LIMITS_UNKNOWN and not state.limits_requested
        if decision.reason in (Reason.NOT_READ, Reason.FACTS_TOO_OLD) or unasked:
            self._state.reads.request([claim.node])
        if decision.reason is Reason.INTERFACE_REFUSED:
            wait = next_try_at(state.memory, state.node) - state.now + 1.0
            return Step(stop=True, again_after_seconds=wait, trouble=decision.explanation[-1])
        if decision.reason is Reason.NOT_RUNNING:
            wait = state.memory.not_running_until - state.now + 1.0
            return Step(stop=True, again_after_seconds=wait, trouble=decision.explanation[-1])
        return Step(stop=True, trouble=decision.explanation[-1] if decision.blocked else "")

    def _must_publish(self, state: NodeState, decision: Plan, step: Step, memory: Memory) -> bool:
        """Say whether the object is to be written now."""
        if step.changed:
            return step.stop or decision.urgency is Urgency.EMPTY
        if not step.stop or not state.has_something_to_show:
            return False
        if decision.reason is Reason.AT_CAPACITY and state.memory.reason != decision.reason:
            return True  # the object may show nothing of it, but an Event tells it
        # Compared instead of remembered: this run completes what an interrupted one may have begun.
        return next_write(state.obj, with_memory(state, memory), self._policy) is not None


def _in_deficit(state: NodeState, decision: Plan) -> bool | None:
    """Say whether the node lacks addresses that it could have; None if its facts are unknown."""
    if state.interfaces is None:
        return None
    return decision.figures.needed > 0 and decision.reason not in (Reason.AT_CAPACITY, Reason.INTERFACE_REFUSED)


def _learned(state: NodeState, decision: Plan, step: Step) -> tuple[Memory, float | None]:
    """What the next run, the object and people should know; and the wait."""
    memory = step.memory or state.memory
    again = step.again_after_seconds
    if step.failed and step.shared:
        memory = msgspec.structs.replace(memory, retries=memory.retries + 1)
        longest = SHARED_LONGEST_SECONDS.get(decision.urgency, SHARED_LONGEST_OTHERWISE_SECONDS)
        again = again if again is not None else _back_off_seconds(memory.retries, longest)
    elif step.failed:
        recent = state.now - memory.failed_at < BACK_OFF_RESET_SECONDS
        failures = memory.failures + 1 if recent else 1
        memory = msgspec.structs.replace(memory, failures=failures, failed_at=state.now)
        again = again if again is not None else _back_off_seconds(failures, BACK_OFF_LONGEST_SECONDS)
    elif step.changed:
        memory = msgspec.structs.replace(memory, failures=0, retries=0)
    memory = msgspec.structs.replace(
        memory,
        reason=decision.reason.value,
        reasons=(*decision.explanation, *decision.troubles),
        last_action=step.did or memory.last_action,
        trouble=" ".join(filter(None, (step.trouble, *decision.troubles))) if step.stop else memory.trouble,
        release=next(each for each in (step.release, decision.release, memory.release) if each is not None),
    )
    return memory, again


def _after_setback(memory: Memory, state: NodeState, again: float | None) -> float | None:
    """The wait of a run: its own or, if a step beside the pool is soon to be tried again, until then.

    Longer waits are the periodic read's: work that waits is not enqueued again by what a read shows.
    """
    waits = (each.until - state.now for each in (memory.ipv6, memory.static_address))
    soon = [wait for wait in waits if 0 < wait <= SOON_SECONDS]
    return again if again is not None or not soon else min(soon) + 1.0


def _back_off_seconds(failures: int, longest_seconds: float) -> float:
    """Base 1 s, factor 2, jitter between half and the whole."""
    longest = min(longest_seconds, BACK_OFF_BASE_SECONDS * 2.0 ** min(failures - 1, 12))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
