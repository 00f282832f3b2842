"""Nodes that ask for more than a pool, over real processes: IPv6, Elastic IPs, and addresses for pods that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from waiting import until
from whole import System, running

from eni_tasks.sandbox.fleet.agent120 import Agent120DualStack

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE_COUNT = 6
TAGS = {"pool": "egress"}
WAITING = 20

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    settings = {"ENI_TASKS_IPV6": "true", "ENI_TASKS_STATIC_ADDRESSES": "true"}
    with running(settings=settings) as system:
        vpc = system.ec2.view().vpcs[0]
        subnet = system.ec2.add_subnet(vpc.id, "a", "10.0.240.0/22", ipv6_cidr="2001:db8:0:1::/64")
        system.fleet._world = {**system.fleet._world, "dual_stack": {"a": subnet.id}}
        for _ in range(NODE_COUNT):
            system.ec2.allocate_elastic_ip(**TAGS)
        ipam: Any = {"static-ip-tags": TAGS}
        system.fleet.add(NODE_COUNT, types=("m5.4xlarge",), ipam=ipam, home="dual_stack")
        for name in system.fleet.names:
            system.fleet.exchange_agent(name, Agent120DualStack)
        yield system


def shown(system: System, name: str) -> tuple[str, int]:
    """The static address, and how many IPv6 prefixes, as the object shows them."""
    status = system.fleet.get(name).get("status", {})
    prefixes = [eni.get("ipv6-prefixes", ()) for eni in status.get("eni", {}).get("enis", {}).values()]
    return status.get("ipam", {}).get("assigned-static-ip", ""), sum(map(len, prefixes))


def test_each_node_gets_one_elastic_ip_and_one_prefix(system: System) -> None:
    def served() -> bool:
        found = [shown(system, name) for name in system.fleet.names]
        return all(address and prefixes == 1 for address, prefixes in found)

    until(served, "all nodes show a static address and an IPv6 prefix")
    until(system.quiet, "all pools are at size, and no work is left")
    assert len({shown(system, name)[0] for name in system.fleet.names}) == NODE_COUNT
    for name in system.fleet.names:
        obj = system.fleet.get(name)
        system.fleet.report(obj)
        assert system.fleet.agent(system.fleet.get(name)).started
    view = system.ec2.view()
    assert sum(each.association is not None for each in view.elastic_ips) == NODE_COUNT
    assert sum(len(each.ipv6_prefixes) for each in view.interfaces) == NODE_COUNT
    assert system.clean()


def test_pods_that_wait_are_served_by_one_call(system: System) -> None:
    name = system.fleet.names[0]
    until(lambda: len(system.pool(name)) == 8, "its pool is at size")
    until(system.quiet, "no work is left")
    system.kube.set_pods(name, [], waiting=WAITING, waiting_on_host_network=7)
    state = system.services.state.nodes
    until(lambda: state.read(name).pending_pods == WAITING, "the watcher has counted them")
    system.reset()
    system.fleet.use(system.fleet.get(name), 8)
    until(lambda: len(system.pool(name)) == 8 + WAITING, "there is an address for each of them")
    until(system.quiet, "no work is left")
    assert system.calls() == {"AssignPrivateIpAddresses": 1}
    assert system.clean()
