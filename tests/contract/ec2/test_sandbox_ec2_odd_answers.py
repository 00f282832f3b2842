"""What describes of the sandbox's EC2 can be made to answer: late, short, incomplete, malformed or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from eni_tasks.sandbox.ec2.admin import Ec2Admin
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract.ec2_servers import Sandbox


def code(call: Any, **options: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**options)
    return str(refused.value.response["Error"]["Code"])


def pages_of(sandbox: Sandbox, **options: Any) -> Iterator[list[str]]:
    """The ids on each page of a listing of interfaces."""
    paginator = sandbox.client.get_paginator("describe_network_interfaces")
    for page in paginator.paginate(PaginationConfig={"PageSize": 5}, **options):
        yield [each["NetworkInterfaceId"] for each in page["NetworkInterfaces"]]


def pages(sandbox: Sandbox, **options: Any) -> list[list[str]]:
    return list(pages_of(sandbox, **options))


# -- pages ---------------------------------------------------------------------------------------------
def test_short_pages_hold_everything_once(sandbox: Sandbox) -> None:
    made = [sandbox.create() for _ in range(7)]
    sandbox.control.set_knobs(page_limit=3)
    assert pages(sandbox) == [made[:3], made[3:6], made[6:]]


def test_pages_are_short_or_empty_where_a_filter_drops_their_items(sandbox: Sandbox) -> None:
    made = [sandbox.create(Description="wanted" if number in {1, 5} else "other") for number in range(6)]
    sandbox.control.set_knobs(page_limit=2)
    wanted = [{"Name": "description", "Values": ["wanted"]}]
    assert pages(sandbox, Filters=wanted) == [[made[1]], [], [made[5]]]


def test_a_page_limit_below_one_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(RuntimeError, match="page_limit is 0"):
        Ec2Admin(sandbox.server.url).set_knobs(page_limit=0)


def test_one_failing_page(sandbox: Sandbox) -> None:
    made = [sandbox.create() for _ in range(12)]
    fault = Fault(action="DescribeNetworkInterfaces", page=2, code="InternalError", status=500)
    sandbox.control.add_faults([fault])
    sandbox.interfaces()  # not a second page: the fault waits
    assert sandbox.control.pending_faults() == [fault]
    seen = pages_of(sandbox)
    assert next(seen) == made[:5]
    with pytest.raises(ClientError, match="InternalError"):
        next(seen)
    assert [each for page in pages(sandbox) for each in page] == made


# -- items ---------------------------------------------------------------------------------------------
def test_malformed_items(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    made = sandbox.create(1)
    sandbox.attach(made, instance)
    wrong = {made: {"deviceIndex": None, "macAddress": "<zz>", "privateIpAddress": "300.1.2"}}
    wrong |= {sandbox.subnet_id: {"cidrBlock": "100.64.0.0"}, "m5.large": {"ipv4AddressesPerInterface": None}}
    Ec2Admin(sandbox.server.url).set_knobs(malformed=wrong)
    shown = sandbox.interface(made)
    assert "DeviceIndex" not in shown["Attachment"]
    assert shown["Attachment"]["Status"] == "attached"
    assert shown["MacAddress"] == "<zz>"
    assert {each["PrivateIpAddress"] for each in shown["PrivateIpAddresses"]} == {"300.1.2"}
    others = [each for each in sandbox.interfaces() if each["NetworkInterfaceId"] != made]
    assert [each["Attachment"]["DeviceIndex"] for each in others] == [0]
    assert sandbox.client.describe_subnets(SubnetIds=[sandbox.subnet_id])["Subnets"][0]["CidrBlock"] == "100.64.0.0"
    [kind] = sandbox.client.describe_instance_types(InstanceTypes=["m5.large"])["InstanceTypes"]
    assert "Ipv4AddressesPerInterface" not in kind["NetworkInfo"]
    sandbox.control.set_knobs(malformed={})
    assert sandbox.interface(made)["Attachment"]["DeviceIndex"] == 1


@pytest.mark.parametrize("how", ["knob", "fault"])
def test_a_subnet_that_is_not_listed(sandbox: Sandbox, how: str) -> None:
    subnets = sandbox.client.describe_subnets
    before = {each["SubnetId"] for each in subnets()["Subnets"]}
    if how == "knob":
        Ec2Admin(sandbox.server.url).set_knobs(unlisted=[sandbox.subnet_id])
    else:
        Ec2Admin(sandbox.server.url).add_faults(Fault(action="DescribeSubnets", hides=(sandbox.subnet_id,), times=2))
    assert {each["SubnetId"] for each in subnets()["Subnets"]} == before - {sandbox.subnet_id}
    assert code(subnets, SubnetIds=[sandbox.subnet_id]) == "InvalidSubnetID.NotFound"
    sandbox.create()  # it exists
    sandbox.control.set_knobs(unlisted=[])
    assert {each["SubnetId"] for each in subnets()["Subnets"]} == before


# -- VPCs ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["associating", "failed", "disassociated"])
def test_states_of_cidr_blocks(sandbox: Sandbox, state: str) -> None:
    admin = Ec2Admin(sandbox.server.url)
    vpc = sandbox.built.vpc_id

    def blocks(name: str) -> dict[str, str]:
        [shown] = sandbox.client.describe_vpcs(VpcIds=[vpc])["Vpcs"]
        found = shown.get(f"{name}AssociationSet", [])
        return {each[name]: each[f"{name}State"]["State"] for each in found}

    admin.set_cidr_block(vpc, "100.65.0.0/16", state)
    admin.set_cidr_block(vpc, "2001:db8::/56")
    assert blocks("CidrBlock") == {
        "10.0.0.0/16": "associated",
        "100.64.0.0/16": "associated",
        "100.65.0.0/16": state,
    }
    assert blocks("Ipv6CidrBlock") == {"2001:db8::/56": "associated"}
    admin.set_cidr_block(vpc, "100.65.0.0/16", "associated")
    admin.set_cidr_block(vpc, "100.64.0.0/16", state)
    assert blocks("CidrBlock") == {"10.0.0.0/16": "associated", "100.64.0.0/16": state, "100.65.0.0/16": "associated"}
    with pytest.raises(RuntimeError, match="set_cidr_block"):
        admin.set_cidr_block(vpc, "100.66.0.0/16", "lost")
    assert len(blocks("CidrBlock")) == 3


def test_an_interface_of_another_vpc(sandbox: Sandbox) -> None:
    admin = Ec2Admin(sandbox.server.url)
    vpc = admin.add_vpc("10.9.0.0/16")
    subnet = admin.add_subnet(vpc.id, "a", "10.9.0.0/24", tags={"purpose": "other"})
    instance = sandbox.launch()
    made = sandbox.create(SubnetId=subnet.id)
    sandbox.attach(made, instance)
    of_instance = sandbox.interfaces(Filters=[{"Name": "attachment.instance-id", "Values": [instance]}])
    assert [each["VpcId"] for each in of_instance] == [sandbox.built.vpc_id, vpc.id]
    assert admin.violations() == []


# -- lag -----------------------------------------------------------------------------------------------
def test_reads_lag_by_action(timed: Sandbox, clock: Any) -> None:
    instance = timed.launch()
    timed.control.set_knobs(
        read_lag_seconds={"DescribeNetworkInterfaces": 20, "DescribeSubnets": 5, "DescribeInstances": 0}
    )
    free = timed.client.describe_subnets(SubnetIds=[timed.subnet_id])["Subnets"][0]["AvailableIpAddressCount"]
    made = timed.create(3)
    timed.attach(made, instance)

    def seen() -> tuple[bool, int, bool]:
        [item] = timed.client.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
        [subnet] = timed.client.describe_subnets(SubnetIds=[timed.subnet_id])["Subnets"]
        listed = made in {each["NetworkInterfaceId"] for each in timed.interfaces()}
        attached = made in {each["NetworkInterfaceId"] for each in item["NetworkInterfaces"]}
        return attached, free - subnet["AvailableIpAddressCount"], listed

    assert seen() == (True, 0, False)
    assert code(timed.client.describe_network_interfaces, NetworkInterfaceIds=[made]) == (
        "InvalidNetworkInterfaceID.NotFound"
    )
    clock.advance(5)
    assert seen() == (True, 4, False)
    clock.advance(15)
    assert seen() == (True, 4, True)


def test_all_other_reads_lag(timed: Sandbox, clock: Any) -> None:
    timed.control.set_knobs(read_lag_seconds={"DescribeNetworkInterfaces": 0, "*": 30})
    address = timed.control.allocate_elastic_ip()
    timed.control.set_cidr_block(timed.built.vpc_id, "100.65.0.0/16")
    made = timed.create()
    assert [each["NetworkInterfaceId"] for each in timed.interfaces()] == [made]

    def late() -> tuple[int, int]:
        [vpc] = timed.client.describe_vpcs(VpcIds=[timed.built.vpc_id])["Vpcs"]
        return len(vpc["CidrBlockAssociationSet"]), len(timed.client.describe_addresses()["Addresses"])

    assert late() == (2, 0)
    clock.advance(30)
    assert late() == (3, 1)
    assert timed.client.describe_addresses(AllocationIds=[address.id])["Addresses"]


# -- refusals and instances ----------------------------------------------------------------------------
def test_an_attach_refused_once(sandbox: Sandbox) -> None:
    """Volumes share the slots of many types: a place may be free a moment later."""
    instance = sandbox.launch()
    made = sandbox.create()
    refused = Fault(
        action="AttachNetworkInterface",
        code="AttachmentLimitExceeded",
        message="Interface count 2 exceeds the limit for m5.large",
        resource=instance,
    )
    Ec2Admin(sandbox.server.url).add_faults(refused)
    place = {"NetworkInterfaceId": made, "InstanceId": instance, "DeviceIndex": 1, "NetworkCardIndex": 0}
    assert code(sandbox.client.attach_network_interface, **place) == "AttachmentLimitExceeded"
    sandbox.client.attach_network_interface(**place)


@pytest.mark.parametrize(
    ("action", "call", "options"),
    [
        ("DescribeAddresses", "describe_addresses", {}),
        ("DescribeInstanceTypes", "describe_instance_types", {"InstanceTypes": ["m5.large"]}),
        ("DescribeVpcs", "describe_vpcs", {}),
        ("AssignIpv6Addresses", "assign_ipv6_addresses", {"NetworkInterfaceId": "eni-0", "Ipv6AddressCount": 1}),
        ("AssociateAddress", "associate_address", {"AllocationId": "eipalloc-0", "NetworkInterfaceId": "eni-0"}),
        ("UnassignPrivateIpAddresses", "unassign_private_ip_addresses", {"NetworkInterfaceId": "eni-0"}),
    ],
)
def test_a_fault_for_any_action(sandbox: Sandbox, action: str, call: str, options: dict[str, Any]) -> None:
    sandbox.control.add_faults([Fault(action=action, code="Unavailable", status=503)])
    assert code(getattr(sandbox.client, call), **options) == "Unavailable"
    assert sandbox.control.counts()[action] == {"Unavailable": 1}
    assert sandbox.control.pending_faults() == []


def test_an_instance_whose_type_changes(sandbox: Sandbox) -> None:
    admin = Ec2Admin(sandbox.server.url)
    instance = sandbox.launch("m5.large", max_interfaces=2)
    sandbox.attach(sandbox.create(9), instance, 1)
    third = {"NetworkInterfaceId": sandbox.create(), "InstanceId": instance, "DeviceIndex": 2, "NetworkCardIndex": 0}
    assert code(sandbox.client.attach_network_interface, **third) == "AttachmentLimitExceeded"
    for smaller in ("t3.micro", "t3.medium"):  # too few interfaces, too few addresses
        with pytest.raises(RuntimeError, match=f"{smaller} does not take the interfaces that {instance} has"):
            admin.change_instance_type(instance, smaller)
    admin.change_instance_type(instance, "m5.xlarge")
    [item] = sandbox.client.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    assert item["InstanceType"] == "m5.xlarge"
    sandbox.client.attach_network_interface(**third)
    assert admin.violations() == []
