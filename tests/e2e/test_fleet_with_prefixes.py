"""A fleet that gets /28 prefixes, over real processes: agents of both kinds, and a type that takes none."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

import pytest
from waiting import until
from whole import System, running

from eni_tasks.sandbox.fleet.agent120 import Agent120

if TYPE_CHECKING:
    from collections.abc import Iterator

NITRO, NEWER, XEN = range(3)
PODS = 60

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(settings={"ENI_TASKS_PREFIX_DELEGATION": "true"}) as system:
        system.fleet.add(3, types=("m5.large", "m5.large", "m4.large"), home="pod_subnets")
        system.fleet.exchange_agent(system.fleet.names[NEWER], Agent120)
        yield system


@pytest.fixture(autouse=True)
def at_rest(system: System) -> None:
    until(system.quiet, "all pools are at size, and no work is left")


def shown(system: System, number: int) -> list[str]:
    """The prefixes that the object shows."""
    enis = system.fleet.get(system.fleet.names[number])["status"]["eni"]["enis"]
    return [prefix for eni in enis.values() for prefix in eni.get("prefixes", ())]


def test_each_node_gets_what_its_type_takes(system: System) -> None:
    assert [bool(shown(system, number)) for number in (NITRO, NEWER, XEN)] == [True, True, False]
    for number in (NITRO, NEWER):
        inside = {str(address) for prefix in shown(system, number) for address in IPv4Network(prefix)}
        assert set(system.pool(system.fleet.names[number])) == inside
    assert len(system.pool(system.fleet.names[XEN])) == 8
    assert system.clean()


@pytest.mark.parametrize("number", [NITRO, NEWER], ids=["1.19", "1.20"])
def test_a_burst_costs_one_call(system: System, number: int) -> None:
    name = system.fleet.names[number]
    system.reset()
    if number == NITRO:
        system.kube.set_pods(name, [], waiting=PODS)
        nodes = system.services.state.nodes
        until(lambda: nodes.read(name).pending_pods == PODS, "the watcher has counted them")

    def served() -> bool:
        obj = system.fleet.get(name)
        system.fleet.use(obj, PODS if number == NEWER else min(PODS, len(obj["spec"]["ipam"]["pool"])))
        return len(system.fleet.agent(obj).used) == PODS

    until(served, "all pods have addresses")
    until(system.quiet, "no work is left")
    assert system.calls() == {"AssignPrivateIpAddresses": 1}
    assert system.clean()


def test_a_plan_and_the_status_tell_of_prefixes(system: System) -> None:
    answer = system.cli("status", system.fleet.names[NITRO], "--json")
    assert answer.returncode == 0, answer.stderr
    interfaces = json.loads(answer.stdout)["interfaces"]
    assert sorted(prefix for each in interfaces for prefix in each["prefixes"]) == sorted(shown(system, NITRO))
    assert sum(each["address_count"] for each in interfaces) == 16 * len(shown(system, NITRO))
