"""Dual-stack agents of Cilium 1.20: one /80 for each node that asks for IPv6, beside its pool."""

from __future__ import annotations

from ipaddress import IPv6Network
from typing import TYPE_CHECKING, Any

import pumped
import pytest
from pumped import System
from pumped_agent import AgentOn

from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.fleet import Agent
from eni_tasks.sandbox.fleet.agent120 import Agent120, Agent120DualStack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eni_tasks.sandbox.ec2.records import Instance

PODS = {"first-interface-index": 1}


@pytest.fixture
def system(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    with pumped.running(redis_url, tmp_path, monkeypatch, ipv6=True) as system:
        yield system


def dual_stack(system: System, number: int = 1, **options: Any) -> str:
    """A subnet with IPv6 in zone a."""
    world = system.built.world
    with world.lock:
        block = f"10.0.{200 + number}.0/24"
        return world.add_subnet(system.built.vpc_id, "a", block, options.get("tags"), f"2001:db8:0:{number}::/64").id


def dual_stack_node(system: System, subnet: str, **parts: Any) -> tuple[Instance, AgentOn]:
    instance = system.add_node(subnet=subnet, **parts)
    return instance, AgentOn(system, Agent120DualStack)


def prefixes(system: System, instance: Instance) -> list[tuple[str, ...]]:
    """The IPv6 prefixes of the interfaces, by device."""
    return [each.ipv6_prefixes for each in system.interfaces(instance)]


def error(system: System) -> str:
    return system.object()["status"].get("ipam", {}).get("operator-status", {}).get("error", "")


def test_an_interface_with_room_gets_the_prefix_and_the_agent_starts(system: System) -> None:
    instance, on = dual_stack_node(system, dual_stack(system))
    system.settle()
    ((prefix,),) = prefixes(system, instance)
    assert IPv6Network(prefix).prefixlen == 80
    (entry,) = system.object()["status"]["eni"]["enis"].values()
    assert entry["ipv6-prefixes"] == [prefix]
    on.report()
    assert on.agent.started
    assert prefix in on.agent.blocks
    assert (len(system.pool()), error(system), system.status().ready) == (8, "", True)
    # One is enough, whatever comes.
    system.fresh()
    on.pods(5)
    system.settle()
    system.resync()
    assert [call.action for call in system.ec2.calls() if call.action == "AssignIpv6Addresses"] == []
    assert sum(map(len, prefixes(system, instance))) == 1
    assert system.clean()


def test_a_new_interface_is_created_with_it(system: System) -> None:
    instance, on = dual_stack_node(system, dual_stack(system), eni=PODS)
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert [len(found) for found in prefixes(system, instance)] == [0, 1]
    on.report()
    assert on.agent.started
    assert system.clean()


def test_an_interface_is_created_for_it_alone_if_the_attached_ones_have_no_ipv6(system: System) -> None:
    instance = system.add_node(subnet=system.built.node_subnets["a"])
    on = AgentOn(system, Agent120DualStack)
    there = dual_stack(system)
    system.settle()
    assert len(system.pool()) == 8
    first, second = system.interfaces(instance)
    assert (second.subnet_id, len(second.ipv6_prefixes), len(second.addresses)) == (there, 1, 0)
    on.report()
    assert on.agent.started
    assert (error(system), system.status().ready, first.ipv6_prefixes) == ("", True, ())
    assert system.clean()


def test_a_full_node_gets_it_all_the_same(system: System) -> None:
    subnet = dual_stack(system)
    instance = system.launch(subnet=subnet)
    for device in (1, 2):
        system.ec2.add_interface(subnet, instance_id=instance.id, device_index=device, secondary_count=9)
    system.ec2.assign_addresses(system.interfaces(instance)[0].id, 9)
    system.add_node(instance=instance)
    AgentOn(system, Agent120DualStack)
    system.settle()
    assert [len(found) for found in prefixes(system, instance)] == [1, 0, 0]
    assert system.clean()


def test_where_no_subnet_has_ipv6_the_pool_is_served_and_the_object_says_why(system: System) -> None:
    instance = system.add_node()
    on = AgentOn(system, Agent120DualStack)
    system.settle()
    assert len(system.pool()) == 8
    assert "no attached interface that may serve pods has a free IPv6 slot in a subnet with IPv6" in error(system)
    assert not system.status().ready
    on.report()
    assert not on.agent.started
    system.fresh()
    for _ in range(3):
        system.later(60)
        system.resync()
    assert (system.mutations(), len(system.interfaces(instance))) == ({}, 1)
    dual_stack(system)
    system.later(60)
    system.resync()
    on.report()
    assert (on.agent.started, error(system)) == (True, "")


@pytest.mark.parametrize(
    "code", ["UnauthorizedOperation", "InvalidParameterValue", "UnsupportedOperation", "PrivateIpAddressLimitExceeded"]
)
def test_a_refusal_costs_no_addresses(system: System, code: str) -> None:
    system.ec2.add_faults([Fault(action="AssignIpv6Addresses", code=code, times=None)])
    instance, _ = dual_stack_node(system, dual_stack(system))
    system.settle()
    assert len(system.pool()) == 8
    assert code in error(system)
    assert len(system.ec2.calls("AssignIpv6Addresses")) <= 2
    system.ec2.clear_faults()
    for _ in range(3):
        system.later(60)
        system.resync()
    assert sum(map(len, prefixes(system, instance))) == 1
    assert (error(system), system.status().ready) == ("", True)
    assert system.clean()


@pytest.mark.parametrize("code", ["InvalidParameterCombination", "UnsupportedOperation"])
def test_an_interface_that_is_refused_with_a_prefix_is_created_without(system: System, code: str) -> None:
    system.ec2.add_faults([Fault(action="CreateNetworkInterface", code=code)])
    instance, _ = dual_stack_node(system, dual_stack(system), eni=PODS)
    system.settle(within_seconds=30)
    first, second = system.ec2.calls("CreateNetworkInterface")
    assert (first.parameters.get("Ipv6PrefixCount"), second.parameters.get("Ipv6PrefixCount")) == ("1", None)
    assert len(system.pool()) == 8
    for _ in range(3):
        system.later(60)
        system.resync()
    assert [len(found) for found in prefixes(system, instance)] == [0, 1]
    assert (error(system), system.status().ready) == ("", True)
    assert system.clean()


def test_after_an_unclear_answer_the_instance_is_read(system: System) -> None:
    system.ec2.add_faults([Fault(action="AssignIpv6Addresses", drop=True, after=True)])
    instance, _ = dual_stack_node(system, dual_stack(system))
    system.settle(within_seconds=60)
    assert len(system.ec2.calls("AssignIpv6Addresses")) == 1
    assert sum(map(len, prefixes(system, instance))) == 1
    assert (len(system.pool()), error(system), system.status().ready) == (8, "", True)


def test_a_late_read_neither_hides_the_prefix_nor_fetches_another(system: System) -> None:
    instance, on = dual_stack_node(system, dual_stack(system))
    system.settle()
    ((prefix,),) = prefixes(system, instance)
    on.report()
    interface = system.interfaces(instance)[0]
    system.ec2.set_knobs(malformed={interface.id: {"ipv6PrefixSet": None}})
    system.fresh()
    for _ in range(2):
        system.later(20)
        system.resync()
    on.report()
    assert prefix in on.agent.blocks
    assert (system.mutations(), system.status().ready) == ({}, True)
    system.ec2.set_knobs(malformed={})
    system.resync()
    assert (system.mutations(), system.writes()) == ({}, {})


def test_an_agent_that_asks_later_and_one_that_is_downgraded(system: System) -> None:
    instance = system.add_node(subnet=dual_stack(system))
    on = AgentOn(system, Agent120)
    system.settle()
    assert prefixes(system, instance) == [()]
    on.upgrade(Agent120DualStack)
    system.settle()
    assert sum(map(len, prefixes(system, instance))) == 1
    on.pods(3)
    system.settle()
    on.upgrade(Agent)
    system.fresh()
    system.settle()
    system.resync()
    assert (system.mutations(), sum(map(len, prefixes(system, instance)))) == ({}, 1)
    assert system.status().ready


def test_an_agent_that_asks_for_ipv6_alone_gets_no_addresses(system: System) -> None:
    instance = system.add_node(subnet=dual_stack(system))
    requested = [{"pool": "default", "needed": {"ipv6-addrs": 8}}]
    system.change("node", lambda body: body["spec"]["ipam"].update({"pools": {"requested": requested}}))
    system.settle()
    assert sum(map(len, prefixes(system, instance))) == 1
    assert system.pool() == {}


def test_without_the_setting_no_right_is_used_and_the_object_says_so(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch) as system:
        instance, _ = dual_stack_node(system, dual_stack(system), eni=PODS)
        system.settle()
        assert len(system.pool()) == 8
        assert "ENI_TASKS_IPV6" in error(system)
        assert sum(map(len, prefixes(system, instance))) == 0
