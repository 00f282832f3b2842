"""Interfaces that are no ordinary ones: without IPv4, on other cards, in other VPCs, in subnets that are not listed."""

import msgspec
import pytest
from vector_world import POLICY
from worlds import M5_LARGE, T3_SMALL, eni, planned, subnet, world

from eni_tasks.domain import capacity
from eni_tasks.domain.addresses import pool
from eni_tasks.domain.creation import next_device_index
from eni_tasks.domain.eni_entries import eni_entries
from eni_tasks.domain.interface_item import interface_from_item
from eni_tasks.domain.status import desired
from eni_tasks.errors import InvalidInput
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import Limits, Vpc
from eni_tasks.model.plan import Assign, CreateInterface, Reason, SetDeleteOnTermination

ATTACHED = {
    "NetworkInterfaceId": "eni-7",
    "SubnetId": "subnet-a",
    "VpcId": "vpc-1",
    "PrivateIpAddress": "10.0.0.4",
    "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.4", "Primary": True}, {"PrivateIpAddress": "10.0.0.5"}],
    "Attachment": {"InstanceId": "i-1", "DeviceIndex": 1, "Status": "attached"},
}


# -- items ---------------------------------------------------------------------------------------
def test_an_interface_without_private_ipv4_is_an_interface():
    item = {key: value for key, value in ATTACHED.items() if not key.startswith("PrivateIp")}
    read = interface_from_item(item)
    assert (read.primary_address, read.addresses, read.device_index) == ("", (), 1)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"Attachment": {"InstanceId": "i-1"}}, "DeviceIndex"),
        ({"SubnetId": ""}, "SubnetId"),
        ({"VpcId": None}, "VpcId"),
        ({"PrivateIpAddresses": []}, "PrivateIpAddresses"),
        ({"PrivateIpAddresses": [{"Primary": True, "PrivateIpAddress": "10.0.0.4"}, {}]}, "PrivateIpAddresses"),
    ],
)
def test_what_an_attached_item_lacks_is_unknown(change, names):
    with pytest.raises(InvalidInput, match=f"eni-7.*{names}"):
        interface_from_item(ATTACHED | change)


# -- without IPv4 --------------------------------------------------------------------------------
def test_an_interface_without_ipv4_takes_slot_and_index_and_is_never_pooled():
    ipv6_only = eni(1, 0, primary_address="")
    state = world(eni(0, 0), ipv6_only, first_interface_index=0, use_primary_address=True)
    assert next_device_index(state.interfaces, state.node) == 2
    assert set(pool(state.interfaces, state.node).values()) == {"eni-0"}
    assert "eni-1" not in eni_entries(CiliumNode(), state)
    assert planned(state).figures.capacity == 20
    assert planned(state).figures.free_slots == 1


def test_no_useless_create_where_it_takes_the_last_slot():
    state = world(eni(0, 3), eni(1, 3), eni(2, 0, primary_address=""), limits=T3_SMALL, first_interface_index=0)
    assert (planned(state).action, planned(state).reason) == (None, Reason.AT_CAPACITY)


# -- cards ---------------------------------------------------------------------------------------
TWO_CARDS = Limits(instance_type="two", max_interfaces=3, ipv4_per_interface=10, network_card=1)


def test_addresses_on_another_card_stay_in_the_pool_and_nothing_is_added_there():
    other = eni(5, 3, network_card=1)
    held = dict.fromkeys(other.addresses[:2], "eni-5")
    state = world(eni(0, 2), other, first_interface_index=0, pool=held)
    assert set(pool(state.interfaces, state.node)) == {"10.0.1.0", "10.0.1.1", "10.5.1.0", "10.5.1.1"}
    assert set(desired(CiliumNode(), state, POLICY).pool) == {"10.0.1.0", "10.0.1.1", "10.5.1.0", "10.5.1.1"}
    assert planned(state).action == Assign(interface_id="eni-0", subnet_id="subnet-a", count=4)
    assert planned(state).figures.capacity == 27 + 2
    without_room = world(eni(0, 9), eni(1, 9), eni(2, 9), other, first_interface_index=0, used=29, pool=held)
    assert planned(without_room).action is None
    assert planned(without_room).figures.needed == 0


def test_a_default_card_that_is_not_0_gets_the_interfaces():
    first, efa = eni(0, 0, network_card=1), eni(1, 0, id="eni-card-0", network_card=0)
    another = eni(2, 0, id="eni-card-0-too", network_card=0)
    state = world(first, efa, another, limits=TWO_CARDS, first_interface_index=1, network_card=1)
    action = planned(state).action
    assert isinstance(action, CreateInterface)
    assert (action.network_card, action.device_index) == (1, 1)
    assert action.security_groups == ("sg-node",)
    assert planned(state).figures.free_slots == 2


# -- VPCs and subnets ----------------------------------------------------------------------------
def test_an_interface_in_another_vpc_is_shown_and_not_pooled():
    foreign = eni(1, 2, subnet="subnet-x", vpc_id="vpc-2")
    state = world(eni(0, 8), foreign, first_interface_index=0, subnets=(subnet("subnet-a", 9), subnet("subnet-x", 9)))
    shared = msgspec.structs.replace(
        state.infrastructure, vpcs=state.infrastructure.vpcs | {"vpc-2": Vpc(id="vpc-2", primary_cidr="172.16.0.0/16")}
    )
    target = desired(CiliumNode(), msgspec.structs.replace(state, infrastructure=shared), POLICY)
    assert set(target.enis) == {"eni-0", "eni-1"}
    assert target.enis["eni-1"].vpc.primary_cidr == "172.16.0.0/16"
    assert set(target.pool.values()) == {"eni-0"}


def test_what_can_not_be_shown_does_not_count_and_the_need_is_served_elsewhere():
    state = world(eni(0, 2), eni(1, 8, subnet="subnet-gone"), first_interface_index=0)
    decided = planned(state)
    assert (decided.figures.available, decided.figures.needed) == (2, 6)
    assert decided.action == Assign(interface_id="eni-0", subnet_id="subnet-a", count=6)
    assert any("eni-1 (subnet subnet-gone)" in sentence for sentence in decided.explanation)


def test_a_subnet_that_is_not_listed_is_the_reason():
    state = world(eni(1, 8, subnet="subnet-gone"), limits=M5_LARGE, subnets=(subnet("subnet-a", 0),))
    decided = planned(state)
    assert (decided.reason, decided.blocked) == (Reason.SUBNET_NOT_LISTED, True)
    assert "subnet-gone" in decided.explanation[-1]
    at_most = world(eni(1, 8, subnet="subnet-gone"), max_allocate=8)
    assert (planned(at_most).reason, planned(at_most).blocked) == (Reason.SUBNET_NOT_LISTED, True)


# -- capacity ------------------------------------------------------------------------------------
def test_capacity_0_fits_nothing():
    state = world(eni(0, 0), limits=M5_LARGE, first_interface_index=3)
    decided = planned(state)
    assert (decided.figures.capacity, decided.figures.needed, decided.action) == (0, 0, None)
    assert (decided.reason, decided.blocked) == (Reason.AT_CAPACITY, True)
    assert "first-interface-index 3" in decided.explanation[-1]


def test_the_pre_allocate_that_is_filled_in_fits_what_is_left():
    excluded = eni(1, 0, tags={"for": "others"})
    state = world(eni(0, 0), excluded, eni(2, 0), limits=T3_SMALL, exclude_interface_tags={"for": "others"})
    assert capacity.pre_allocate_default(T3_SMALL, state.node, state.interfaces, 8) == 3
    capped = msgspec.structs.replace(state.node, max_allocate=2)
    assert capacity.pre_allocate_default(T3_SMALL, capped, state.interfaces, 8) == 2


def test_delete_on_termination_is_set_only_when_no_address_is_needed():
    ours = eni(1, 8, tags=dict(POLICY.interface_tags), attachment_id="a-1")
    assert isinstance(planned(world(ours)).action, SetDeleteOnTermination)
    assert isinstance(planned(world(ours, used=1)).action, Assign)
