"""Interfaces, blocks, subnets and items of EC2 that are no ordinary ones, in the running system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from pumped import System


def test_an_interface_without_ipv4_takes_a_slot_and_an_index(system: System) -> None:
    instance = system.launch()
    subnet, group = system.built.node_subnets["a"], [system.built.node_group]
    odd = system.ec2.add_interface(
        subnet, groups=group, instance_id=instance.id, device_index=1, interface_type="efa-only"
    )
    system.add_node(instance=instance, ipam={"pre-allocate": 16})
    system.settle()
    assert system.mutations() == {"Assign": 1, "Create": 1, "Attach": 1, "Modify": 1}
    assert [each.attachment.device_index for each in system.interfaces(instance)] == [0, 1, 2]
    assert odd.id not in system.pool().values()
    system.fresh()
    system.use(16)
    system.settle(within_seconds=60)
    assert (system.mutations(), len(system.pool())) == ({"Assign": 1}, 18)
    assert system.status().reason == "at-capacity"
    assert system.clean()


def test_only_associated_blocks_are_shown(system: System) -> None:
    states = {"100.64.0.0/16": "associated", "100.65.0.0/16": "failed", "100.66.0.0/16": "disassociating"}
    for block, state in states.items():
        system.ec2.set_cidr_block(system.built.vpc_id, block, state)
    system.add_node()
    system.settle()
    (entry,) = system.object()["status"]["eni"]["enis"].values()
    assert entry["vpc"]["cidrs"] == ["100.64.0.0/16"]


def test_an_interface_in_another_vpc_is_shown_and_not_pooled(system: System) -> None:
    vpc = system.ec2.add_vpc("172.20.0.0/16")
    subnet = system.ec2.add_subnet(vpc.id, "a", "172.20.1.0/24")
    instance = system.launch()
    foreign = system.ec2.add_interface(subnet.id, secondary_count=2, instance_id=instance.id, device_index=1)
    system.add_node(instance=instance)
    system.settle()
    system.resync()
    entry = system.object()["status"]["eni"]["enis"][foreign.id]
    assert (entry["vpc"]["primary-cidr"], entry["subnet"]["cidr"]) == ("172.20.0.0/16", "172.20.1.0/24")
    assert foreign.id not in system.pool().values()
    assert system.status().ready
    system.fresh()
    system.resync()
    assert system.reads()["DescribeVpcs"] == 1
    assert vpc.id not in system.services.state.network.recent_vpcs()


def test_addresses_on_other_cards_stay_at_take_over(system: System) -> None:
    instance = system.launch("c6in.32xlarge")
    subnet, group = system.built.node_subnets["a"], [system.built.node_group]
    other = system.ec2.add_interface(
        subnet, groups=group, secondary_count=3, instance_id=instance.id, device_index=1, network_card=1
    )
    pool = {address: {"resource": other.id} for address in other.addresses}
    system.add_node(instance_type="c6in.32xlarge", instance=instance, ipam={"pool": pool})
    system.settle()
    system.resync()
    assert len(system.pool()) == 8
    assert {address for address, owner in system.pool().items() if owner == other.id} == set(other.addresses)
    assert other.id in system.object()["status"]["eni"]["enis"]
    assert len(next(each for each in system.interfaces(instance) if each.id == other.id).addresses) == 3
    assert system.status().ready


def test_a_subnet_that_is_not_listed_is_named_and_its_addresses_do_not_count(system: System) -> None:
    instance = system.launch()
    lost = system.built.pod_subnets["a"]
    system.ec2.set_knobs(unlisted=[lost])
    group = [system.built.node_group]
    odd = system.ec2.add_interface(lost, groups=group, secondary_count=9, instance_id=instance.id, device_index=1)
    system.add_node(instance=instance)
    system.settle()
    assert (len(system.pool()), system.status().available) == (8, 8)
    assert odd.id not in system.pool().values()
    assert any(lost in sentence for sentence in system.status().explanation)
    system.ec2.set_knobs(exhausted_subnets=list(system.built.node_subnets.values()))
    system.use(7)
    system.settle(within_seconds=5)
    status = system.status()
    assert (status.reason, status.ready) == ("subnet-not-listed", False)
    assert lost in status.explanation[-1]
    system.ec2.set_knobs(unlisted=[])
    system.later(10)
    system.resync()
    assert len(system.pool()) == 17
    assert system.status().ready


@pytest.mark.parametrize("element", ["deviceIndex", "subnetId", "privateIpAddressesSet"])
def test_an_item_that_can_not_be_understood_is_named_and_counted_and_its_addresses_stay(
    system: System, element: str
) -> None:
    instance = system.add_node()
    system.settle()
    pool, (interface,) = system.pool(), system.interfaces(instance)
    system.services.counters.drain()
    system.later(1)
    system.fresh()
    system.ec2.set_knobs(malformed={interface.id: {element: None}})
    system.resync()
    counted = {series.name: count for series, count in system.services.counters.drain().items()}
    assert counted["ec2_items_left_out_total"] >= 1
    assert system.pool() == pool
    system.settle(within_seconds=400)
    system.use(4)
    system.settle(within_seconds=5)
    status = system.status()
    assert (status.reason, status.ready) == ("facts-too-old", False)
    assert interface.id in status.explanation[-1]
    assert system.mutations() == {}
    assert system.pool() == pool
    system.ec2.set_knobs(malformed={})
    system.settle(within_seconds=70)
    assert len(system.pool()) == 12
    assert system.status().ready


def test_an_instance_that_was_never_understood_says_why(system: System) -> None:
    instance = system.launch()
    (interface,) = system.interfaces(instance)
    system.ec2.set_knobs(malformed={interface.id: {"deviceIndex": None}})
    system.add_node(instance=instance)
    system.settle(within_seconds=5)
    status = system.status()
    assert (status.reason, status.ready) == ("instance-not-read", False)
    assert f"{interface.id}: it is attached and has no DeviceIndex" in status.explanation[-1]
    assert interface.id in system.services.status.node(NodeName("node")).facts_unknown
