"""Simulated days: pods come and go, addresses follow, and nothing flaps. The domain alone, with a clock of its own."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from vector_world import POLICY, decoded
from worlds import M5_4XLARGE, M5_LARGE, T3_SMALL, eni, world

from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.planner import plan
from eni_tasks.domain.status import next_write
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Assign, CreateInterface, Unassign
from eni_tasks.model.state import Facts
from eni_tasks.sandbox.fleet.agents import Agent
from eni_tasks.sandbox.kube.patching import json_patch

if TYPE_CHECKING:
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.state import NodeState

MINUTE, DELAY = 60.0, 180.0
ON = msgspec.structs.replace(POLICY, release_excess=True, release_delay_seconds=DELAY)
DAY_MINUTES, CALM_MINUTES = 24 * 60, 60


class Day:
    """One node, its agent and its operator."""

    def __init__(self, limits: Limits, seed: int, *, late: float = 0.3, **ipam: int) -> None:
        self.limits, self.policy, self.late = limits, ON, late
        self.rng = Random(seed)  # noqa: S311 - a simulation
        self.now = 10_000.0
        self.memory = Memory()
        self.interfaces: list[Interface] = [eni(0, 0)]
        self.calls: Counter[type] = Counter()
        self.writes = 0
        self.given = count()  # addresses that EC2 has given so far
        spec = {"instance-id": "i-1", "eni": {"first-interface-index": 0, "vpc-id": "vpc-1"}, "ipam": ipam}
        spec["eni"]["availability-zone"] = "eu-1a"
        self.body: dict[str, Any] = {
            "metadata": {"name": "node-1", "uid": "uid-1", "resourceVersion": "1"},
            "spec": spec,
        }
        self.agent = Agent(self.body)

    def minute(self, pods: int) -> None:
        """Pods come or go; the agent reports, or is late; the operator looks."""
        self.now += MINUTE
        self.agent.observe(self.body)
        self.agent.set_pod_count(pods)
        if self.rng.random() >= self.late:
            self._report()
        self._maintain()
        if self.rng.random() < 0.3:
            self._report()
            self._maintain()

    def _report(self) -> None:
        self.agent.observe(self.body)
        assert self.agent.refusal == ""
        self._store(self.agent.report(self.body))

    def _store(self, body: dict[str, Any]) -> None:
        version = int(body["metadata"]["resourceVersion"]) + 1
        self.body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}

    def state(self) -> NodeState:
        """What a run reads."""
        obj = decoded(self.body)
        facts = Facts(instance_id="i-1", interfaces=tuple(self.interfaces), described_at=self.now)
        base = world(limits=self.limits)
        infrastructure = msgspec.structs.replace(base.infrastructure, described_at=self.now)
        return msgspec.structs.replace(
            base,
            obj=obj,
            node=parse_node(obj),
            facts=facts,
            now=self.now,
            memory=self.memory,
            infrastructure=infrastructure,
        )

    def _maintain(self) -> None:
        for _ in range(8):
            state = self.state()
            decided = plan(state, self.policy, self.now)
            if decided.release is not None:
                self.memory = msgspec.structs.replace(self.memory, release=decided.release)
            if decided.action is None:
                break
            self.calls[type(decided.action)] += 1
            self._act(decided.action)
        self._publish()

    def _act(self, action: Any) -> None:
        match action:
            case Assign():
                self._change(action.interface_id, self._new(action.count), frozenset())
            case Unassign():
                gone = {address for name in (*action.addresses, *action.prefixes) for address in expanded(name)}
                assert gone.isdisjoint(self.agent.used), "a used address was given back"
                self._change(action.interface_id, (), gone)
            case CreateInterface():
                new = eni(action.device_index, 0, addresses=self._new(action.secondary_count), owner_id="")
                self.interfaces.append(new)
            case _:
                raise AssertionError(action)

    def _new(self, number: int) -> tuple[str, ...]:
        # Addresses return after a while, as in a small subnet.
        held = {address for each in self.interfaces for address in each.addresses}
        fresh = (f"10.8.{n // 200 % 4}.{n % 200}" for n in self.given)
        return tuple(next(each for each in fresh if each not in held) for _ in range(number))

    def _change(self, interface_id: str, come: tuple[str, ...], go: Any) -> None:
        self.interfaces = [
            msgspec.structs.replace(each, addresses=(*(a for a in each.addresses if a not in go), *come))
            if each.id == interface_id
            else each
            for each in self.interfaces
        ]

    def _publish(self) -> None:
        for _ in range(12):
            state = self.state()
            write = next_write(state.obj, state, self.policy)
            if write is None:
                return
            self._store(json_patch(json.loads(json.dumps(self.body)), write.operations))
            self.writes += 1
            self.agent.observe(self.body)
            assert self.agent.refusal == "", "a version of the object is torn"
        raise AssertionError("the object is never complete")

    def excess(self) -> int:
        """Addresses in excess now."""
        return plan(self.state(), self.policy, self.now).figures.excess


def changes(day: Day) -> tuple[int, int]:
    """EC2 mutations, and writes of the object."""
    return day.calls.total(), day.writes


@pytest.mark.parametrize(
    ("limits", "seed"),
    [(T3_SMALL, 0), (T3_SMALL, 1), (M5_LARGE, 0), (M5_LARGE, 1), (M5_LARGE, 2)],
    ids=["t3.small-0", "t3.small-1", "m5.large-0", "m5.large-1", "m5.large-2"],
)
def test_a_day_of_ups_and_downs(limits: Limits, seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a simulation
    day = Day(limits, seed, **{"pre-allocate": 3, "max-above-watermark": seed})
    most = limits.max_interfaces * (limits.ipv4_per_interface - 1) - 3
    pods = target = 0
    for minute in range(DAY_MINUTES):
        if minute % 120 == 0:
            target = rng.randint(0, most)
        pods += max(-4, min(4, target - pods)) + rng.randint(-1, 1)
        pods = max(0, min(most, pods))
        day.minute(pods)
    held = max(len(each.addresses) for each in day.interfaces)
    assert day.calls[Unassign] > 0
    assert held <= limits.ipv4_per_interface - 1

    # The demand stays as it is: what is in excess goes, and then nothing happens any more.
    for _ in range(CALM_MINUTES):
        day.minute(pods)
    assert len(day.agent.used) == pods
    assert day.excess() == 0
    quiet = changes(day)
    for _ in range(CALM_MINUTES):
        day.minute(pods)
    assert changes(day) == quiet


def test_a_fall_costs_one_call_per_interface_and_a_rise_one_per_interface_filled() -> None:
    day = Day(M5_4XLARGE, 1, **{"pre-allocate": 8})
    for pods in (0, 8, 16, 24, 32, 40, 48):
        day.minute(pods)
        day.minute(pods)
    full = [len(each.addresses) for each in day.interfaces]
    assert full == [29, 27]
    before = Counter(day.calls)
    for _ in range(60):
        day.minute(2)
    assert day.calls - before == {Unassign: 2}
    assert sum(len(each.addresses) for each in day.interfaces) == 10
    before = Counter(day.calls)
    for _ in range(60):
        day.minute(2)
    assert day.calls == before


def test_pods_that_come_and_go_within_the_delay_cost_nothing() -> None:
    day = Day(M5_4XLARGE, 2, late=0.0, **{"pre-allocate": 8})
    for _ in range(20):
        day.minute(20)
    before = changes(day)
    for _ in range(30):
        day.minute(18)
        day.minute(20)
    assert day.calls[Unassign] == 0
    assert day.calls.total() == before[0]
