"""The simulated agent of Cilium 1.20 does what the released one does, faults included."""

from __future__ import annotations

from typing import Any

import pytest
from vector_world import cases, load

from eni_tasks.sandbox.fleet import Agent, Agent16, Agent120, Agent120DualStack
from eni_tasks.sandbox.fleet.agent120 import agent_of, shown_blocks

VECTORS = [*load("multipool"), *load("multipool-1.20")]
VPC = {"id": "vpc-1", "primary-cidr": "10.0.0.0/8"}


def of_category(category: str) -> list[Any]:
    return cases([vector for vector in VECTORS if vector["category"] == category])


def obj(blocks: list[str], **spec: Any) -> dict[str, Any]:
    """An object that shows blocks of one interface."""
    singles = [block.removesuffix("/32") for block in blocks if block.endswith("/32")]
    prefixes = [block for block in blocks if not block.endswith("/32") and ":" not in block]
    eni = {"id": "eni-1", "vpc": VPC, "addresses": singles, "prefixes": prefixes}
    eni["ipv6-prefixes"] = [block for block in blocks if ":" in block]
    head = {"metadata": {"uid": "u", "name": "n"}, "spec": {"instance-id": "i-1", "eni": {}, "ipam": {}} | spec}
    return head | {"status": {"eni": {"enis": {"eni-1": eni}}}}


def first(block: str, count: int) -> list[str]:
    network, last = block.partition("/")[0].rsplit(".", 1)
    return [f"{network}.{int(last) + offset}" for offset in range(count)]


def listed(agent: Agent, of: dict[str, Any]) -> list[str]:
    (entry,) = agent.request(of)["spec"]["ipam"]["pools"]["allocated"]
    return sorted(entry["cidrs"])


@pytest.mark.parametrize("vector", of_category("agent_pools"))
def test_blocks_it_takes(vector: dict[str, Any]) -> None:
    given = vector["input"]
    pools = {"allocated": [{"pool": "default", "cidrs": given.get("own_allocated", [])}]}
    spec = {"instance-id": "i-1", "eni": given["spec_eni"], "ipam": {"pools": pools}}
    shown = {"metadata": {"uid": "u"}, "spec": spec, "status": {"eni": {"enis": given["status_enis"]}}}
    assert sorted(Agent120(shown).blocks) == sorted(vector["expected"]["default_pool_cidrs_sorted"])


@pytest.mark.parametrize("vector", of_category("agent_demand"))
def test_what_it_asks_for(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    agent = Agent120(obj([], ipam={"pre-allocate": given["pre_allocate"]}))
    agent.used = [f"10.0.0.{last}" for last in range(given["in_use"])]
    agent.waiting = given["pending"]
    (requested,) = agent.request(obj([]))["spec"]["ipam"]["pools"]["requested"]
    assert requested == {"pool": "default", "needed": {"ipv4-addrs": expected["requested_ipv4"]}}


@pytest.mark.parametrize("vector", of_category("agent_release"))
def test_what_it_gives_up(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    blocks = [each["cidr"] for each in given["cidrs"]]
    used = [address for each in given["cidrs"] for address in first(each["cidr"], each["used"])]
    agent = Agent120(obj(blocks, ipam={"pre-allocate": given["pre_allocate"]}), used)
    agent.waiting = given["pending"]
    assert listed(agent, obj(blocks)) == expected["allocated_sorted"]
    assert agent.given_up == expected["dropped"]


@pytest.mark.parametrize("vector", of_category("agent_reclaim"))
def test_what_it_takes_back(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    blocks = [each["cidr"] for each in given["cidrs"]]
    used = [address for each in given["cidrs"] for address in first(each["cidr"], each["used"])]
    agent = Agent120(obj(blocks, ipam={"pre-allocate": given["free_wanted"]}), used)
    agent.given_up, agent.dead = list(given["released_still_advertised"]), set(given["removed"])
    assert listed(agent, obj(blocks)) == expected["allocated_sorted"]
    assert agent.given_up == [each for each in given["released_still_advertised"] if each not in expected["reclaimed"]]


@pytest.mark.parametrize("vector", of_category("agent_update"))
def test_a_block_in_use_that_was_not_shown_once_is_dead(vector: dict[str, Any]) -> None:
    used: dict[str, int] = {}
    agent = Agent120(obj([]))
    for step, expected in zip(vector["input"]["steps"], vector["expected"]["steps"], strict=True):
        agent.observe(obj(step["advertised"]))
        used |= step.get("used", {})
        agent.used = [address for block, count in used.items() for address in first(block, count)]
        assert sorted(agent.blocks) == expected["allocated_sorted"]
        assert sorted(agent.dead) == expected["removed"]
        assert len(agent._free_addresses()) == expected["addresses_it_can_hand_out"]


def test_it_takes_a_block_back_before_its_object_says_so() -> None:
    blocks = ["10.0.1.0/28", "10.0.2.0/28"]
    agent = Agent120(obj(blocks))
    agent.set_pod_count(4)
    assert listed(agent, obj(blocks)) == ["10.0.1.0/28"]
    agent.set_pod_count(20)
    assert len(agent.used) == 20
    assert agent.waiting == 0


def test_pods_wait_for_addresses_and_raise_the_request() -> None:
    agent = Agent120(obj(["10.0.0.9/32"]))
    agent.set_pod_count(3)
    assert (agent.used, agent.waiting) == (["10.0.0.9"], 2)
    (requested,) = agent.request(obj(["10.0.0.9/32"]))["spec"]["ipam"]["pools"]["requested"]
    assert requested["needed"] == {"ipv4-addrs": 11}


def test_it_empties_the_used_addresses_of_an_older_agent() -> None:
    shown = obj(["10.0.0.9/32"])
    shown["status"]["ipam"] = {"used": {"10.0.0.9": {}}, "operator-status": {"error": "x"}}
    agent = Agent120(shown)
    assert agent.used == ["10.0.0.9"]
    assert agent.report(shown)["status"]["ipam"] == {"used": {}, "operator-status": {"error": "x"}}


def test_with_ipv6_it_starts_with_a_prefix_only() -> None:
    agent = Agent120DualStack(obj(["10.0.0.9/32"]))
    assert not agent.started
    agent.observe(obj(["10.0.0.9/32", "2001:db8:0:1:aaaa::/80"]))
    assert agent.started
    (requested,) = agent.request(obj(["10.0.0.9/32"]))["spec"]["ipam"]["pools"]["requested"]
    assert requested["needed"] == {"ipv4-addrs": 8, "ipv6-addrs": 8}


@pytest.mark.parametrize("kind", [Agent, Agent120, Agent120DualStack])
def test_its_object_says_which_kind_wrote_it(kind: type[Agent]) -> None:
    shown = obj(["10.0.0.9/32"])
    assert type(agent_of(kind(shown).request(shown))) is kind
    # An agent of 1.19 that took over fills `used` again; what the newer one asked for stays behind.
    left = Agent120(shown).request(shown)
    left["status"] = left["status"] | {"ipam": {"used": {"10.0.0.9": {}}}}
    assert type(agent_of(left)) is Agent
    assert type(agent_of({"metadata": {"uid": "u"}, "spec": {"eni": {"instance-id": "i-1"}}})) is Agent16


def test_blocks_of_excluded_interfaces_are_left_out() -> None:
    shown = obj(["10.0.0.9/32"], eni={"first-interface-index": 1})
    assert list(shown_blocks(shown)) == []
