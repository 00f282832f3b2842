"""EC2's reads lag for longer than the settle time: no need is served twice, and no used address leaves a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pumped import System

NODES = ("one", "two", "three")


@pytest.mark.parametrize("lag", [20, 40])
def test_lagging_reads_serve_no_need_twice_and_withdraw_nothing(system: System, lag: float) -> None:
    instances = {name: system.add_node(name) for name in NODES}
    system.settle()
    system.ec2.set_knobs(read_lag_seconds={"DescribeNetworkInterfaces": lag})
    system.later(1)
    system.fresh()
    for used in (4, 7, 12):  # twelve need a second interface
        in_use = {name: set(system.use(used, name)) for name in NODES}
        for _ in range(10):
            system.settle(within_seconds=3)
            system.resync()
            assert all(in_use[name] <= system.pool(name).keys() for name in NODES)
    for name in NODES:
        held = [address for each in system.interfaces(instances[name]) for address in each.addresses]
        assert len(held) == len(system.pool(name)) == 20
        assert system.status(name).ready
    system.later(lag + 70)
    system.resync()
    assert all(system.status(name).ready and len(system.pool(name)) == 20 for name in NODES)
    assert system.clean()


def used_and_hidden(system: System, instance_type: str = "m5.large") -> str:
    """A node whose used addresses are on an interface that reads don't show; answers its id."""
    instance = system.add_node(instance_type=instance_type, ipam={"pre-allocate": 9})
    system.settle()
    system.use(9)
    system.settle()
    system.use(18)
    hidden = system.interfaces(instance)[1].id
    system.settle()
    system.later(1)
    system.ec2.add_faults([Fault(action="DescribeNetworkInterfaces", hides=[hidden], times=None)])
    return hidden


def test_status_tells_how_many_used_addresses_reads_lack_and_since_when(system: System) -> None:
    hidden = used_and_hidden(system)
    system.resync()
    status = system.status()
    assert status.ready
    assert "EC2's reads have lacked 9 used addresses of" in status.explanation[0]
    system.ec2.clear_faults()
    system.settle(within_seconds=16)
    assert "lacked" not in " ".join(system.status().explanation)
    assert hidden in system.pool().values()


def test_used_addresses_that_two_reads_a_minute_apart_lack_are_lost(system: System) -> None:
    hidden = used_and_hidden(system)
    system.resync()
    system.settle(within_seconds=55)
    assert hidden in system.pool().values()
    system.settle(within_seconds=25)
    assert hidden not in system.pool().values()


def test_a_pending_mutation_stays_pending_while_reads_lag(system: System) -> None:
    used_and_hidden(system, "m5.xlarge")
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", drop=True, after=True)])
    system.use(19)
    system.settle(within_seconds=25)
    facts = system.services.state.facts
    instance_id = system.services.state.nodes.read(NodeName("node")).node.instance_id
    assert facts.get([instance_id])[instance_id].mutation_pending
    system.ec2.clear_faults()
    system.settle(within_seconds=70)
    assert not facts.get([instance_id])[instance_id].mutation_pending
    assert system.status().ready
    assert system.clean()


def test_after_a_loss_of_redis_used_addresses_need_the_same_proof(system: System) -> None:
    hidden = used_and_hidden(system)
    system.empty_redis()
    system.settle(within_seconds=50)
    assert hidden in system.pool().values()
    system.settle(within_seconds=60)
    assert hidden not in system.pool().values()
