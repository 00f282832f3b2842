"""Cilium's release vectors: what is chosen, and the operator's side of the hand-shake.

The agents' side is that of the sandbox' agents, and tested with them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from superseded import held, ours
from vector_world import POLICY, cases, load, node_state

from eni_tasks.domain import release
from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.excess import candidates
from eni_tasks.domain.planner import plan
from eni_tasks.model.node import Mark
from eni_tasks.sandbox.fleet.agents import Agent

NOW = 1000.0


@pytest.mark.parametrize("vector", held("action_release"))
def test_what_is_chosen(vector: Any) -> None:
    expected = ours(vector)
    state = node_state(vector)
    decided = plan(state, POLICY, NOW)
    figures = {key: getattr(decided.figures, key) for key in ("available", "used", "needed", "excess")}
    assert figures == expected["stats"]

    found = candidates(state, decided.figures.excess, ()) if decided.figures.excess else None
    wanted = expected.get("release", expected if "ips" in expected else None)
    if vector["category"] in ("off", "nothing") or wanted is None:
        on = msgspec.structs.replace(POLICY, release_excess=vector["category"] != "off")
        assert plan(state, on, NOW).release == release.NO_RELEASE
    elif not wanted["ips"]:
        assert found is None
    else:
        assert found is not None
        assert found.interface.id == wanted["eni"]
        assert found.interface.subnet_id == wanted["subnet"]
        assert found.prefixes == tuple(wanted.get("prefixes", ()))
        assert [address for name in found.names for address in expanded(name)] == wanted["ips"]


@pytest.mark.parametrize(
    "vector", [each for each in held("release_handshake") if each.values[0]["category"] in ("sequence", "restart")]
)
def test_the_operators_side(vector: Any) -> None:
    given = vector["input"]
    told = Sequence(given)
    assert [told.step(step) for step in given["steps"]] == ours(vector)["steps"]


class Sequence:
    """An operator, an agent and an object between them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.delay = given["delay"]
        self.pool = list(given["pool"])  # as the object shows it
        # The instance's addresses; one that is not in the pool is chosen in a vector all the same.
        self.held = {*given["pool"], *(each for step in given["steps"] for each in step.get("candidates", ()))}
        self.shown = dict(given.get("release_ips", {}))
        self.clocks: dict[str, release.Clock] = {}

    def step(self, step: dict[str, Any]) -> dict[str, Any]:
        match step["do"]:
            case "operator_pass":
                return self._pass(step)
            case "operator_publish":
                asked = {name for name, clock in self.clocks.items() if clock.asked is not None}
                self.shown = release.marks(self.shown, asked=asked, held=self.held)
            case "agent":
                self._answer(step["in_use"])
            case "set_pool":
                self.held |= {*step["pool"]} - {*self.pool}
                self.pool = step["pool"]
            case "operator_restart":
                self.clocks = {}
        return {"release_ips": dict(self.shown)}

    def _pass(self, step: dict[str, Any]) -> dict[str, Any]:
        now = step["t"]
        chosen = [] if step["needed"] else [each for each in step["candidates"] if each in self.held]
        node = msgspec.structs.replace(NODE, release_ips=dict(self.shown))
        answers = {each: release.answer(node, release.Contract.HANDSHAKE, each) for each in chosen}
        step_of = release.STEPS[release.Contract.HANDSHAKE]
        self.clocks, let_go = release.advance(
            self.clocks, answers, lambda clock, given: step_of(clock, given, now, self.delay), now
        )
        fails = bool(let_go) and step.get("unassign_error", False)
        if not fails:
            self.held -= let_go
        return {"unassigned": [] if fails else sorted(let_go), "error": fails}

    def _answer(self, in_use: list[str]) -> None:
        obj = node_object(self.pool, in_use, self.shown)
        self.shown = Agent(obj).report(obj)["status"]["ipam"].get("release-ips", {})


def node_object(pool: list[str] | None, used: list[str], marks: dict[str, str]) -> dict[str, Any]:
    eni = {"addresses": [*(pool or ()), *marks], "vpc": {"primary-cidr": "10.0.0.0/16"}}
    return {
        "metadata": {"uid": "u"},
        "spec": {"ipam": {"pool": {address: {"resource": "eni-1"} for address in pool or ()}}},
        "status": {
            "eni": {"enis": {"eni-1": eni}},
            "ipam": {"used": {address: {"owner": "default/pod"} for address in used}, "release-ips": dict(marks)},
        },
    }


NODE = node_state(load("action_release")[-1]).node


@pytest.mark.parametrize("vector", cases([v for v in load("release_handshake") if v["category"] == "agent_table"]))
def test_the_agents_side(vector: Any) -> None:
    given = vector["input"]
    obj = node_object(given["pool"], given["in_use"], given["release_ips"])
    assert Agent(obj).report(obj)["status"]["ipam"]["release-ips"] == vector["expected"]["release_ips"]


@pytest.mark.parametrize("vector", cases([v for v in load("release_handshake") if v["category"] == "agent_alloc"]))
def test_what_the_agent_hands_out(vector: Any) -> None:
    given = vector["input"]
    agent = Agent(node_object(given["pool"], given["in_use"], given["release_ips"]))
    agent.started = True
    agent.set_pod_count(1)
    assert bool(agent.used) is vector["expected"]["allocatable"]


def test_marks_are_of_cilium() -> None:
    states = {
        state for vector in load("release_handshake") for state in vector["input"].get("release_ips", {}).values()
    }
    assert states <= set(Mark)
