"""How the sandbox's EC2 behaves over time: tokens, asynchronous changes, lagging reads, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from contract.ec2_servers import Sandbox


def code_of(call: Any, **options: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**options)
    return refused.value.response["Error"]["Code"]


def of_instance(sandbox: Sandbox, instance_id: str) -> list[dict[str, Any]]:
    return sandbox.interfaces(Filters=[{"Name": "attachment.instance-id", "Values": [instance_id]}])


def test_token_makes_a_repeated_create_harmless(sandbox: Sandbox) -> None:
    made = sandbox.create(2, ClientToken="one")
    assert sandbox.create(2, ClientToken="one") == made
    assert sandbox.create(2, ClientToken="two") != made
    asked = {"SubnetId": sandbox.subnet_id, "SecondaryPrivateIpAddressCount": 3, "ClientToken": "one"}
    assert code_of(sandbox.client.create_network_interface, **asked) == "IdempotentParameterMismatch"
    assert len(sandbox.control.view().interfaces) == 2


def test_detaching_takes_its_time_and_holds_the_place(timed: Sandbox, clock: Any) -> None:
    timed.control.set_knobs(detach_seconds=4)
    instance = timed.launch("t3.micro")  # two interfaces
    made = timed.create()
    attachment = timed.attach(made, instance)
    timed.client.detach_network_interface(AttachmentId=attachment)
    shown = timed.interface(made)
    assert (shown["Status"], shown["Attachment"]["Status"]) == ("in-use", "detaching")
    assert code_of(timed.client.delete_network_interface, NetworkInterfaceId=made) == "InvalidNetworkInterface.InUse"
    place = {"NetworkInterfaceId": timed.create(), "InstanceId": instance, "NetworkCardIndex": 0}
    assert code_of(timed.client.attach_network_interface, DeviceIndex=2, **place) == "AttachmentLimitExceeded"
    clock.advance(4)
    shown = timed.interface(made)
    assert (shown["Status"], shown.get("Attachment")) == ("available", None)
    timed.client.attach_network_interface(DeviceIndex=1, **place)


def test_attaching_takes_its_time(timed: Sandbox, clock: Any) -> None:
    timed.control.set_knobs(attach_seconds=3)
    made = timed.create()
    timed.attach(made, timed.launch())
    assert timed.interface(made)["Attachment"]["Status"] == "attaching"
    clock.advance(3)
    assert timed.interface(made)["Attachment"]["Status"] == "attached"


def test_termination_takes_what_was_told_to_go(timed: Sandbox, clock: Any) -> None:
    timed.control.set_knobs(terminate_seconds=10)
    instance = timed.launch()
    stays, goes = timed.create(1), timed.create(1)
    timed.attach(stays, instance, 1)
    attachment = timed.attach(goes, instance, 2)
    told = {"AttachmentId": attachment, "DeleteOnTermination": True}
    timed.client.modify_network_interface_attribute(NetworkInterfaceId=goes, Attachment=told)
    timed.control.terminate_instance(instance)
    assert len(of_instance(timed, instance)) == 3
    clock.advance(10)
    assert [(each["NetworkInterfaceId"], each["Status"]) for each in timed.interfaces()] == [(stays, "available")]
    [subnet] = timed.client.describe_subnets(SubnetIds=[timed.built.node_subnets["a"]])["Subnets"]
    assert subnet["AvailableIpAddressCount"] == 4096 - 5
    assert timed.control.violations() == []


def test_terminated_instance_is_shown_for_an_hour(timed: Sandbox, clock: Any) -> None:
    instance = timed.launch()
    timed.control.terminate_instance(instance)
    clock.advance(3599)
    [shown] = timed.client.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    assert (shown["State"]["Name"], shown.get("SubnetId")) == ("terminated", None)
    clock.advance(1)
    assert code_of(timed.client.describe_instances, InstanceIds=[instance]) == "InvalidInstanceID.NotFound"


def test_stopped_instance_keeps_its_interfaces_and_starts_again(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    sandbox.attach(sandbox.create(), instance)
    sandbox.control.stop_instance(instance)
    assert len(of_instance(sandbox, instance)) == 2
    sandbox.control.start_instance(instance)
    sandbox.attach(sandbox.create(), instance, 2)


def test_reads_lag_but_changes_do_not(timed: Sandbox, clock: Any) -> None:
    instance = timed.launch()
    timed.control.set_knobs(read_lag_seconds=2)
    made = timed.create(1)
    assert code_of(timed.client.describe_network_interfaces, NetworkInterfaceIds=[made]) == (
        "InvalidNetworkInterfaceID.NotFound"
    )
    timed.attach(made, instance)
    clock.advance(1)
    timed.client.assign_private_ip_addresses(NetworkInterfaceId=made, SecondaryPrivateIpAddressCount=3)
    assert len(of_instance(timed, instance)) == 1
    clock.advance(1)
    assert [len(each["PrivateIpAddresses"]) for each in of_instance(timed, instance)] == [1, 2]
    clock.advance(1)
    assert [len(each["PrivateIpAddresses"]) for each in of_instance(timed, instance)] == [1, 5]


def test_new_ids_are_unknown_for_a_moment(timed: Sandbox, clock: Any) -> None:
    instance = timed.launch()
    clock.advance(9)
    timed.control.set_knobs(new_id_lag_seconds=2)
    made = timed.create()
    place = {"NetworkInterfaceId": made, "InstanceId": instance, "DeviceIndex": 1, "NetworkCardIndex": 0}
    assert code_of(timed.client.attach_network_interface, **place) == "InvalidNetworkInterfaceID.NotFound"
    clock.advance(2)
    timed.client.attach_network_interface(**place)


def test_pages_miss_nothing_that_lives_and_repeat_nothing(sandbox: Sandbox) -> None:
    made = [sandbox.create() for _ in range(12)]
    first = sandbox.client.describe_network_interfaces(MaxResults=5)
    sandbox.client.delete_network_interface(NetworkInterfaceId=made[4])  # the one at which the page ended
    sandbox.create()
    second = sandbox.client.describe_network_interfaces(MaxResults=5, NextToken=first["NextToken"])
    third = sandbox.client.describe_network_interfaces(MaxResults=5, NextToken=second["NextToken"])
    assert "NextToken" not in third
    seen = [each["NetworkInterfaceId"] for page in (first, second, third) for each in page["NetworkInterfaces"]]
    assert seen[:12] == made
    assert len(seen) == 13


@pytest.mark.parametrize(
    ("call", "listed"),
    [
        ("describe_vpcs", "Vpcs"),
        ("describe_subnets", "Subnets"),
        ("describe_security_groups", "SecurityGroups"),
        ("describe_route_tables", "RouteTables"),
        ("describe_instances", "Reservations"),
    ],
)
def test_every_list_has_pages(sandbox: Sandbox, call: str, listed: str) -> None:
    world = sandbox.built.world
    for number in range(6):
        vpc = world.add_vpc(f"10.{number + 1}.0.0/16").id
        world.add_subnet(vpc, "a", f"10.{number + 1}.0.0/24")
        world.add_route_table(vpc, main=True)
        sandbox.launch()
    pages = list(sandbox.client.get_paginator(call).paginate(PaginationConfig={"PageSize": 5}))
    assert len(pages) > 1
    assert [len(page[listed]) for page in pages[:-1]] == [5] * (len(pages) - 1)
    assert sum(len(page[listed]) for page in pages) == len(getattr(sandbox.client, call)()[listed])


def test_fixture_interfaces_look_like_any_other(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    placed = sandbox.control.add_interface(
        sandbox.subnet_id,
        secondary_count=6,
        instance_id=instance,
        device_index=2,
        tags={"a": "1"},
        owner_id="999999999999",
        requester_managed=True,
    )
    shown = of_instance(sandbox, instance)[1]
    assert (shown["NetworkInterfaceId"], shown["Attachment"]["DeviceIndex"]) == (placed.id, 2)
    assert (shown["OwnerId"], shown["RequesterManaged"]) == ("999999999999", True)
    assert len(shown["PrivateIpAddresses"]) == 7
    sandbox.control.remove_interface(placed.id)
    assert len(of_instance(sandbox, instance)) == 1
    assert sandbox.control.violations() == []
