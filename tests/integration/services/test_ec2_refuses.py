"""EC2 refuses, is slow to know its own ids, or doesn't answer: what that leads to, in calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pumped import System

PODS = {"first-interface-index": 1}  # the first interface is not for pods: a node needs one of ours
INDEX_TAKEN = "Instance 'i-1' already has an interface attached at device index '1'."


def refuse(system: System, action: str, code: str, message: str = "scripted", **options: object) -> None:
    system.ec2.add_faults([Fault(action=action, code=code, message=message, **options)])


def waiting(system: System, **parts: object) -> object:
    """A node that has been read and waits for its first interface (or, with eni={}, for its first addresses)."""
    instance = system.add_node(**({"eni": PODS} | parts))
    system.settle_reads()
    return instance


# -- subnets -----------------------------------------------------------------------------------
def test_a_subnet_that_says_full_is_left_alone_for_a_while(system: System) -> None:
    refuse(system, "CreateNetworkInterface", "InsufficientFreeAddressesInSubnet")
    instance = waiting(system)
    system.settle()
    assert system.mutations() == {"Create": 2, "Attach": 1, "Modify": 1}
    assert system.interfaces(instance)[1].subnet_id == system.built.pod_subnets["a"]
    system.fresh()
    second = system.add_node("second", eni=PODS)
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert system.interfaces(second)[1].subnet_id == system.built.pod_subnets["a"]
    system.later(121)
    third = system.add_node("third", eni=PODS)
    system.settle()
    assert system.interfaces(third)[1].subnet_id == system.built.node_subnets["a"]
    assert system.clean()


def test_assigning_where_the_only_subnet_is_full_creates_nothing(system: System) -> None:
    """B30."""
    refuse(system, "AssignPrivateIpAddresses", "InsufficientFreeAddressesInSubnet", times=1)
    only = {"subnet-ids": [system.built.node_subnets["a"]]}
    waiting(system, eni=only)
    system.settle(within_seconds=60)
    assert system.mutations() == {"Assign": 1}
    assert "subnet" in system.status().trouble
    system.later(61)
    system.resync()
    assert system.mutations() == {"Assign": 2}
    assert system.status().ready
    assert system.status().trouble == ""


def test_an_interface_with_room_in_an_empty_subnet_is_no_candidate(system: System) -> None:
    """B31."""
    small = system.built.world.add_subnet(system.built.vpc_id, "a", "10.0.200.0/28").id
    instance = system.add_node(instance=system.launch(subnet=small))
    system.ec2.add_interface(small, secondary_count=9)  # takes the other ten
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert [each.subnet_id for each in system.interfaces(instance)] == [small, system.built.pod_subnets["a"]]
    assert system.status().ready


@pytest.mark.parametrize(("taken", "secondaries"), [(11, None), (10, None), (9, 1), (7, 3)])
def test_a_new_interface_asks_for_what_its_subnet_has(system: System, taken: int, secondaries: int | None) -> None:
    """B33: of eleven addresses some are taken; the interface itself needs one."""
    small = system.built.world.add_subnet(system.built.vpc_id, "a", "10.0.200.0/28").id
    system.ec2.add_interface(small, secondary_count=taken - 1)
    instance = waiting(system, eni=PODS | {"subnet-ids": [small]})
    system.settle(within_seconds=30)
    if secondaries is None:
        assert system.mutations() == {}
        assert system.status().reason == "no-subnet-with-room"
    else:
        assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
        assert len(system.interfaces(instance)[1].addresses) == secondaries
    assert "No subnet with room" in system.object()["status"]["ipam"]["operator-status"]["error"]
    assert system.clean()


# -- limits ------------------------------------------------------------------------------------
def test_an_instance_that_takes_fewer_interfaces_than_its_type(system: System) -> None:
    """B41: one Create, one Attach, one Delete; nothing more for ten minutes."""
    instance = system.add_node(instance_type="m5.4xlarge", max_interfaces=3, ipam={"pre-allocate": 100})
    system.settle()
    assert system.mutations() == {"Create": 3, "Attach": 3, "Modify": 2, "Delete": 1, "Assign": 1}
    system.fresh()
    for _ in range(9):
        system.later(60)
        system.resync()
    assert system.mutations() == {}
    assert len(system.interfaces(instance)) == 3
    assert len(system.pool()) == 87
    assert system.status().reason == "interface-refused"
    assert system.clean()


def test_more_addresses_on_the_interface_than_we_knew(system: System) -> None:
    """B13: EC2's refusal leads to a read, and the read shows that nothing is needed."""
    instance = system.add_node(ipam={"pre-allocate": 4})
    system.settle()
    system.ec2.assign_addresses(system.interfaces(instance)[0].id, 5)
    system.fresh()
    system.use(3)
    system.settle(within_seconds=5)
    assert system.mutations() == {"Assign": 1}
    assert system.reads() == {"DescribeNetworkInterfaces": 1}
    assert len(system.pool()) == 9
    assert system.status().ready


# -- attaching ---------------------------------------------------------------------------------
def test_a_device_index_that_something_else_holds(system: System) -> None:
    instance = waiting(system)
    system.ec2.add_interface(system.built.node_subnets["a"], instance_id=instance.id, device_index=1)
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 2, "Modify": 1}
    assert [each.attachment.device_index for each in system.interfaces(instance)] == [0, 1, 2]
    assert system.clean()


def test_five_taken_indexes_are_enough(system: System) -> None:
    refuse(system, "AttachNetworkInterface", "InvalidParameterValue", INDEX_TAKEN, times=5)
    waiting(system)
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 5, "Delete": 1}
    assert len({call.parameters["NetworkInterfaceId"] for call in system.ec2.calls("AttachNetworkInterface")}) == 1
    indexes = [call.parameters["DeviceIndex"] for call in system.ec2.calls("AttachNetworkInterface")]
    assert indexes == ["1", "2", "3", "4", "5"]
    system.settle(within_seconds=300)
    assert system.status().ready
    assert system.clean()


def test_an_id_that_ec2_does_not_know_yet(system: System) -> None:
    """B17: not found right after Create is no reason to make another."""
    refuse(system, "AttachNetworkInterface", "InvalidNetworkInterfaceID.NotFound", times=2)
    instance = waiting(system)
    system.settle(within_seconds=30)
    assert system.mutations() == {"Create": 1, "Attach": 3, "Modify": 1}
    assert len(system.interfaces(instance)) == 2
    assert system.status().ready


def test_a_stopped_instance_waits_a_minute_and_counts_no_failure(system: System) -> None:
    instance = waiting(system)
    system.ec2.stop_instance(instance.id)
    system.settle(within_seconds=55)
    assert system.mutations() == {"Create": 1, "Attach": 1, "Delete": 1}
    assert system.status().reason == "instance-not-running"
    assert "failures" not in system.memory()
    system.ec2.start_instance(instance.id)
    system.settle(within_seconds=10)
    assert system.mutations() == {"Create": 2, "Attach": 2, "Delete": 1, "Modify": 1}
    assert system.status().ready
    assert system.clean()


def test_news_of_a_stopped_instance_is_worth_one_new_attempt(system: System) -> None:
    """S1: an update of the object ends the wait; our own write of the trouble does not."""
    instance = waiting(system)
    system.ec2.stop_instance(instance.id)
    system.settle(within_seconds=5)
    assert system.mutations()["Attach"] == 1
    system.ec2.start_instance(instance.id)
    system.use(1, phantom=True)
    system.settle(within_seconds=5)
    assert system.mutations()["Attach"] == 2
    assert system.pool()
    assert system.clean()


def test_an_interface_that_cannot_be_marked_is_used_all_the_same(system: System) -> None:
    refuse(system, "ModifyNetworkInterfaceAttribute", "InternalError", status=500, times=2)
    instance = waiting(system)
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 2}
    assert len(system.pool()) == 8
    assert "ModifyNetworkInterfaceAttribute" in system.status().trouble
    system.settle(within_seconds=30)
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 3}
    assert system.interfaces(instance)[1].attachment.delete_on_termination
    assert system.status().ready
    assert system.status().trouble == ""


# -- no answer ---------------------------------------------------------------------------------
@pytest.mark.parametrize("effect", [True, False], ids=["done", "not-done"])
@pytest.mark.parametrize(
    "fault", [{"drop": True}, {"code": "InternalError", "status": 500}], ids=["dropped", "internal-error"]
)
def test_after_an_unclear_assign_it_is_looked_first(system: System, fault: dict[str, object], *, effect: bool) -> None:
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", after=effect, **fault)])
    instance = waiting(system, eni={})
    system.settle(within_seconds=120)
    assert system.mutations() == {"Assign": 1 if effect else 2}
    assert len(system.interfaces(instance)[0].addresses) == 8
    assert [call.action for call in system.ec2.calls()][-2:].count("AssignPrivateIpAddresses") == (0 if effect else 1)
    assert system.status().ready
    assert system.status().trouble == ""


@pytest.mark.parametrize("effect", [True, False], ids=["done", "not-done"])
def test_an_unclear_create_is_repeated_with_its_token(system: System, *, effect: bool) -> None:
    system.ec2.add_faults([Fault(action="CreateNetworkInterface", drop=True, after=effect)])
    instance = waiting(system)
    system.settle(within_seconds=120)
    assert system.mutations() == {"Create": 2, "Attach": 1, "Modify": 1}
    assert len({call.parameters["ClientToken"] for call in system.ec2.calls("CreateNetworkInterface")}) == 1
    assert len(system.interfaces(instance)) == 2
    assert system.status().ready
    assert system.clean()


@pytest.mark.parametrize("effect", [True, False], ids=["done", "not-done"])
def test_after_an_unclear_attach_it_is_looked_first(system: System, *, effect: bool) -> None:
    system.ec2.add_faults([Fault(action="AttachNetworkInterface", drop=True, after=effect)])
    instance = waiting(system)
    system.settle(within_seconds=120)
    assert system.mutations() == {"Create": 1, "Attach": 1 if effect else 2, "Modify": 1}
    assert len(system.interfaces(instance)) == 2
    assert system.status().ready
    assert system.clean()


def test_after_an_unclear_delete_it_is_looked_first(system: System) -> None:
    refuse(system, "AttachNetworkInterface", "InvalidParameterCombination")
    system.ec2.add_faults([Fault(action="DeleteNetworkInterface", drop=True, after=True)])
    instance = waiting(system)
    system.settle(within_seconds=300)
    assert system.mutations() == {"Create": 2, "Attach": 2, "Delete": 1, "Modify": 1}
    assert len(system.interfaces(instance)) == 2
    assert system.clean()


# -- the account -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("eni", "action"),
    [({}, "AssignPrivateIpAddresses"), (PODS, "CreateNetworkInterface"), (PODS, "AttachNetworkInterface")],
)
def test_throttling_slows_all_down_and_creates_nothing_else(
    system: System, eni: dict[str, object], action: str
) -> None:
    """B36(c)."""
    refuse(system, action, "RequestLimitExceeded", status=503)
    instance = waiting(system, eni=eni)
    system.settle()
    word = action.removesuffix("PrivateIpAddresses").removesuffix("NetworkInterface")
    assert system.mutations()[word] == 1
    assert system.bucket(action)["factor"] == 0.5
    system.settle(within_seconds=10)
    assert system.mutations()[word] == 2
    assert "Delete" not in system.mutations()
    assert len(system.interfaces(instance)) == (2 if eni else 1)
    assert system.status().ready


@pytest.mark.parametrize(
    "how", [{"denied_actions": ["CreateNetworkInterface"]}, {"interface_quota": 0}], ids=["rights", "quota"]
)
def test_trouble_of_the_account_is_probed_by_one(system: System, how: dict[str, object]) -> None:
    """B10: fifty nodes meet a refusal that concerns all of them; what needs no Create continues."""
    for number in range(50):
        system.add_node(f"creating-{number}", eni=PODS)
    for number in range(10):
        system.add_node(f"assigning-{number}")
    system.ec2.set_knobs(**how)
    system.settle(within_seconds=180)
    assert system.mutations()["Create"] <= 4  # one to begin with, one a minute after that
    assert all(system.status(f"assigning-{number}").ready for number in range(10))
    shown = system.status("creating-7")
    assert "CreateNetworkInterface" in f"{shown.trouble} {shown.last_action}"
    system.ec2.set_knobs(denied_actions=[], interface_quota=5000)
    system.settle(within_seconds=300)
    assert [number for number in range(50) if not system.status(f"creating-{number}").ready] == []
    assert system.clean()
