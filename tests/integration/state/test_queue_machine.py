"""The work queue's promises under any order of changes, claims, losses, deaths and requeuing.

Hypothesis drives the real scripts on a real server; time passes by moving their clock. The model knows only what
the promises say: who holds a live lease, which changes a run has seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from state_under_test import INSTANCE, KIND, LEASE, OVERDUE, State

from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import Outcome
from eni_tasks.model.work import Claim, Finished
from eni_tasks.state.limiter import AcquireResult

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("a", "b", "c")


@dataclass
class Run:
    """A worker's run; `saw` is the world that it read at its start."""

    claim: Claim
    saw: int
    lease_ends: float


@dataclass
class Model:
    """One node as the promises see it."""

    world: int = 0  # raised whenever it is enqueued
    served: int = 0  # the latest world that a run which ended well had read
    holder: Run | None = None  # who claimed last and was not refused since
    former: list[Run] = field(default_factory=list)  # lost their claim, and may not know it
    message_until: float = -1.0  # a message counts as on its way until then


class WorkMachine(RuleBasedStateMachine):
    """Changes, workers, a lossy queue, and what requeues."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.state = State(url, buckets={})
        self.state.store_nodes(*NAMES)
        self.now = 0.0
        self.queue: list[str] = []
        self.nodes = {name: Model() for name in NAMES}

    def teardown(self) -> None:
        """Whatever happened: once messages arrive and work is requeued, every change is served and nothing is left."""
        for node in self.nodes.values():
            node.holder = None  # every worker dies
        for _ in range(10):
            self.pass_time(LEASE * 100)
            self.requeue()
            while self.queue:
                self.deliver(0)
            for name in NAMES:
                if self.nodes[name].holder is not None:
                    self.finish(name, None)
        for name, node in self.nodes.items():
            assert node.served >= node.world, f"{name}: a change was never served"
        assert self.state.left_over() == []
        self.state.client.close()

    # -- what the system does --------------------------------------------------------------------
    @rule(name=st.sampled_from(NAMES), urgency=st.sampled_from(Urgency), ends_wait=st.booleans())
    def enqueue(self, name: str, urgency: Urgency, *, ends_wait: bool) -> None:
        node = self.nodes[name]
        node.world += 1
        sent = self.state.queue.enqueue(KIND, [(NodeName(name), urgency)], ends_wait=ends_wait)
        if self.live(node):
            assert not sent, "the holder's finish will see it"
        if self.now < node.message_until:
            assert not sent, "one message is on its way already"
        if sent:
            self.send(name)

    @rule(name=st.sampled_from(NAMES), delay=st.sampled_from([5, 25]))
    def enqueue_later(self, name: str, delay: float) -> None:
        self.nodes[name].world += 1
        assert not self.state.queue.enqueue(KIND, [(NodeName(name), Urgency.RELEASE)], delay_seconds=delay)

    @precondition(lambda self: self.queue)
    @rule(position=st.integers(0, 9))
    def deliver(self, position: int) -> None:
        self.start(self.queue.pop(position % len(self.queue)))

    @rule(name=st.sampled_from(NAMES))
    def start(self, name: str) -> None:
        """A message arrives; or a person starts the task by hand."""
        node = self.nodes[name]
        claim = self.state.queue.claim(KIND, NodeName(name))
        if self.live(node):
            assert claim is None, "two holders at once"
            return
        assert claim is not None, "no live claim holds it"
        self.retire(node)
        node.holder = Run(claim, saw=node.world, lease_ends=self.now + LEASE)
        node.message_until = -1.0

    @rule(name=st.sampled_from(NAMES))
    def renew(self, name: str) -> None:
        node = self.nodes[name]
        if node.holder is not None:
            lost = self.state.queue.renew([node.holder.claim])
            assert bool(lost) == (not self.live(node))
            if not lost:
                node.holder.lease_ends = self.now + LEASE

    @rule(name=st.sampled_from(NAMES), again=st.sampled_from([None, 0, 7, 50]))
    def finish(self, name: str, again: float | None) -> None:
        node = self.nodes[name]
        run, node.holder = node.holder, None
        if run is None:
            return
        live = self.now < run.lease_ends
        finished = self.state.queue.finish(run.claim, again_after_seconds=again)
        assert finished is not Finished.STALE or not live
        if finished is Finished.DONE:
            assert run.saw == node.world, "it would forget a change that it has not seen"
        if finished is not Finished.STALE:
            node.served = max(node.served, run.saw)
        if finished is Finished.SEND:
            self.send(name)

    @rule(limit=st.sampled_from([1, 2, 10]))
    def requeue(self, limit: int = 10) -> None:
        requeued = self.state.queue.requeue_overdue(KIND, limit)
        assert len(requeued) <= limit
        for name in requeued:
            assert not self.live(self.nodes[name]), "a living worker is left in peace"
            assert self.now >= self.nodes[name].message_until, "a message in time is not joined by another"
            self.send(name)

    # -- what goes wrong ----------------------------------------------------------------------------
    @precondition(lambda self: self.queue)
    @rule(position=st.integers(0, 9))
    def lose_message(self, position: int) -> None:
        self.queue.pop(position % len(self.queue))

    @precondition(lambda self: self.queue)
    @rule(position=st.integers(0, 9))
    def double_message(self, position: int) -> None:
        self.queue.append(self.queue[position % len(self.queue)])

    @rule(seconds=st.sampled_from([1, 7, OVERDUE, LEASE, 70]))
    def pass_time(self, seconds: float) -> None:
        self.state.later(seconds)
        self.now += seconds

    @rule(name=st.sampled_from(NAMES))
    def former_holder_wakes_up(self, name: str) -> None:
        for run in self.nodes[name].former:
            acquired = self.state.limiter.acquire(run.claim, "A", INSTANCE, urgent=True, busy_seconds=0)
            assert acquired.result is AcquireResult.LOST
            assert not self.state.runs.record(run.claim, Outcome(journal=b"{}"))
            assert self.state.queue.renew([run.claim]) == [run.claim]
            assert self.state.queue.finish(run.claim) is Finished.STALE

    @invariant()
    def a_claim_that_may_mutate_holds_the_lease(self) -> None:
        for node in self.nodes.values():
            if node.holder is not None:
                acquired = self.state.limiter.acquire(node.holder.claim, "A", INSTANCE, urgent=True, busy_seconds=0)
                assert acquired.result is (AcquireResult.OK if self.live(node) else AcquireResult.LOST)

    # -- the model --------------------------------------------------------------------------------
    def live(self, node: Model) -> bool:
        return node.holder is not None and self.now < node.holder.lease_ends

    def retire(self, node: Model) -> None:
        if node.holder is not None:
            node.former = [*node.former[-2:], node.holder]
            node.holder = None

    def send(self, name: str) -> None:
        self.queue.append(name)
        self.nodes[name].message_until = self.now + OVERDUE
        # A dead claim ends when a message is sent for it: its holder is refused from now on.
        self.retire(self.nodes[name])


def test_promises_hold_in_any_order(redis_url: str) -> None:
    machine: Callable[[], WorkMachine] = lambda: WorkMachine(redis_url)  # noqa: E731 - hypothesis wants a factory
    run_state_machine_as_test(
        machine,
        settings=settings(
            # On each server: 150 sequences in all.
            max_examples=75,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
