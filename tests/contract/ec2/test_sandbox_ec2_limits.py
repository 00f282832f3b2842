"""What the sandbox's EC2 refuses, with EC2's codes and the words that tell the causes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract.ec2_servers import Sandbox

NO_INTERFACE = "eni-0123456789abcdef0"


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        call(*arguments, **options)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def small_subnet(sandbox: Sandbox) -> str:
    """A subnet with eleven addresses."""
    return sandbox.built.world.add_subnet(sandbox.built.vpc_id, "a", "10.0.240.0/28").id


def assign(sandbox: Sandbox, interface_id: str, count: int) -> list[str]:
    answer = sandbox.client.assign_private_ip_addresses(
        NetworkInterfaceId=interface_id, SecondaryPrivateIpAddressCount=count
    )
    return [each["PrivateIpAddress"] for each in answer["AssignedPrivateIpAddresses"]]


def test_addresses_come_in_order_and_a_freed_one_rests(sandbox: Sandbox) -> None:
    subnet = small_subnet(sandbox)
    made = sandbox.create(2, SubnetId=subnet)
    assert assign(sandbox, made, 1) == ["10.0.240.7"]  # .0 to .3 are reserved, .4 is the primary
    sandbox.client.unassign_private_ip_addresses(NetworkInterfaceId=made, PrivateIpAddresses=["10.0.240.7"])
    assert assign(sandbox, made, 8) == [f"10.0.240.{last}" for last in (8, 9, 10, 11, 12, 13, 14, 7)]


@pytest.mark.parametrize("how", ["create", "assign"])
def test_full_subnet(sandbox: Sandbox, how: str) -> None:
    subnet = small_subnet(sandbox)
    made = sandbox.create(8, SubnetId=subnet)
    if how == "create":
        code, text = refusal(sandbox.create, 2, SubnetId=subnet)
    else:
        code, text = refusal(assign, sandbox, made, 3)
    assert code == "InsufficientFreeAddressesInSubnet"
    assert "does not have enough free addresses" in text
    assert sandbox.client.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"] == 2


@pytest.mark.parametrize(("instance_type", "limit"), [("t3.small", 3), ("m5.xlarge", 4), ("c6in.32xlarge", 8)])
def test_interfaces_per_instance_on_card_0(sandbox: Sandbox, instance_type: str, limit: int) -> None:
    instance = sandbox.launch(instance_type)
    for index in range(1, limit):
        sandbox.attach(sandbox.create(), instance, index)
    code, text = refusal(sandbox.attach, sandbox.create(), instance, limit)
    assert (code, text) == (
        "AttachmentLimitExceeded",
        f"Interface count {limit + 1} exceeds the limit for {instance_type}",
    )


def test_instance_that_takes_less_than_its_type_says(sandbox: Sandbox) -> None:
    instance = sandbox.launch("m5.4xlarge", max_interfaces=2)
    sandbox.attach(sandbox.create(), instance, 1)
    assert refusal(sandbox.attach, sandbox.create(), instance, 2)[0] == "AttachmentLimitExceeded"


def test_cards_have_indexes_of_their_own_if_named(sandbox: Sandbox) -> None:
    instance = sandbox.launch("c6in.32xlarge")
    sandbox.attach(sandbox.create(), instance, 1, NetworkCardIndex=1)
    unnamed = {"NetworkInterfaceId": sandbox.create(), "InstanceId": instance, "DeviceIndex": 1}
    assert "device index '1'" in refusal(sandbox.client.attach_network_interface, **unnamed)[1]
    sandbox.attach(unnamed["NetworkInterfaceId"], instance, 1)
    assert refusal(sandbox.attach, sandbox.create(), instance, 2, NetworkCardIndex=2)[0] == "InvalidParameterValue"


def test_addresses_per_interface(sandbox: Sandbox) -> None:
    instance = sandbox.launch("t3.small")  # four addresses, the primary among them
    made = sandbox.create(2)
    sandbox.attach(made, instance, 1)
    assert refusal(assign, sandbox, made, 2) == (
        "PrivateIpAddressLimitExceeded",
        "Number of private addresses will exceed limit.",
    )
    assert len(assign(sandbox, made, 1)) == 1
    code, text = refusal(sandbox.attach, sandbox.create(4), instance, 2)
    assert code == "InvalidInterface.IpAddressLimitExceeded"
    assert text == "Address count 5 on interface-2 exceeds the limit for t3.small"


def test_index_in_use(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    sandbox.attach(sandbox.create(), instance, 1)
    code, text = refusal(sandbox.attach, sandbox.create(), instance, 1)
    assert code == "InvalidParameterValue"
    assert text == f"Instance '{instance}' already has an interface attached at device index '1'."


@pytest.mark.parametrize("state", ["pending", "stopping", "stopped", "shutting-down", "terminated"])
def test_instance_that_does_not_run(timed: Sandbox, clock: Any, state: str) -> None:
    timed.control.set_knobs(start_seconds=5, stop_seconds=5, terminate_seconds=5)
    instance = timed.launch()
    if state != "pending":
        clock.advance(5)
        leave = timed.control.stop_instance if state.startswith("stop") else timed.control.terminate_instance
        leave(instance)
    if state in {"stopped", "terminated"}:
        clock.advance(5)
    [shown] = timed.client.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    assert shown["State"]["Name"] == state
    assert refusal(timed.attach, timed.create(), instance) == (
        "IncorrectState",
        f"Instance '{instance}' is not 'running'.",
    )


def test_what_an_attachment_needs(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    made = sandbox.create()
    sandbox.attach(made, instance, 1)
    assert refusal(sandbox.attach, made, instance, 2)[0] == "InvalidNetworkInterface.InUse"
    elsewhere = sandbox.create(SubnetId=sandbox.built.pod_subnets["b"])
    assert refusal(sandbox.attach, elsewhere, instance, 2)[0] == "InvalidParameterCombination"
    assert refusal(sandbox.attach, NO_INTERFACE, instance)[0] == "InvalidNetworkInterfaceID.NotFound"
    assert refusal(sandbox.attach, elsewhere, "i-0123456789abcdef0")[0] == "InvalidInstanceID.NotFound"
    assert refusal(sandbox.attach, elsewhere, "")[0] == "MissingParameter"
    assert refusal(sandbox.attach, elsewhere, "unknown")[0] == "InvalidInstanceID.Malformed"


def test_attached_interface_is_not_deleted(sandbox: Sandbox) -> None:
    made = sandbox.create()
    attachment = sandbox.attach(made, sandbox.launch())
    code, text = refusal(sandbox.client.delete_network_interface, NetworkInterfaceId=made)
    assert (code, text) == ("InvalidNetworkInterface.InUse", f"Network interface '{made}' is currently in use.")
    sandbox.client.detach_network_interface(AttachmentId=attachment)
    sandbox.client.delete_network_interface(NetworkInterfaceId=made)
    assert refusal(sandbox.interface, made)[0] == "InvalidNetworkInterfaceID.NotFound"
    assert refusal(sandbox.client.detach_network_interface, AttachmentId=attachment)[0] == (
        "InvalidAttachmentID.NotFound"
    )


def test_primary_interface_stays(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    [primary] = sandbox.interfaces(Filters=[{"Name": "attachment.instance-id", "Values": [instance]}])
    place = primary["Attachment"]["AttachmentId"]
    assert refusal(sandbox.client.detach_network_interface, AttachmentId=place)[0] == "OperationNotPermitted"


def test_unassign_takes_all_or_none(sandbox: Sandbox) -> None:
    made = sandbox.create(2)
    addresses = [each["PrivateIpAddress"] for each in sandbox.interface(made)["PrivateIpAddresses"]]
    for wrong in ("10.9.9.9", addresses[0]):  # absent, and the primary
        asked = {"NetworkInterfaceId": made, "PrivateIpAddresses": [addresses[1], wrong]}
        assert refusal(sandbox.client.unassign_private_ip_addresses, **asked) == (
            "InvalidParameterValue",
            f"Some of the specified addresses are not assigned to interface {made}",
        )
    assert len(sandbox.interface(made)["PrivateIpAddresses"]) == 3


def test_delete_on_termination_needs_the_attachment(sandbox: Sandbox) -> None:
    made = sandbox.create()
    attachment = sandbox.attach(made, sandbox.launch())
    modify = sandbox.client.modify_network_interface_attribute
    for wrong in ("eni-attach-0", ""):
        change = {"AttachmentId": wrong, "DeleteOnTermination": True}
        code, _ = refusal(modify, NetworkInterfaceId=made, Attachment=change)
        assert code == ("InvalidAttachmentID.NotFound" if wrong else "MissingParameter")
    assert sandbox.interface(made)["Attachment"]["DeleteOnTermination"] is False
    modify(NetworkInterfaceId=made, Attachment={"AttachmentId": attachment, "DeleteOnTermination": True})
    assert sandbox.interface(made)["Attachment"]["DeleteOnTermination"] is True


def test_groups_of_a_new_interface(sandbox: Sandbox) -> None:
    world, vpc = sandbox.built.world, sandbox.built.vpc_id
    many = [world.add_security_group(vpc, f"g{number}").id for number in range(6)]
    other_vpc = world.add_vpc("10.9.0.0/16")
    foreign = world.add_security_group(other_vpc.id, "foreign").id
    assert refusal(sandbox.create, Groups=many)[0] == "SecurityGroupsPerInterfaceLimitExceeded"
    assert refusal(sandbox.create, Groups=[foreign])[0] == "InvalidSecurityGroupID.NotFound"
    assert [group["GroupName"] for group in sandbox.interface(sandbox.create())["Groups"]] == ["default"]


def test_quota_of_interfaces(sandbox: Sandbox) -> None:
    sandbox.control.set_knobs(interface_quota=1)
    made = sandbox.create()
    assert refusal(sandbox.create)[0] == "NetworkInterfaceLimitExceeded"
    sandbox.client.delete_network_interface(NetworkInterfaceId=made)
    sandbox.create()


@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        ("create_network_interface", {"TagSpecifications": [{"ResourceType": "network-interface", "Tags": []}]}, None),
        ("create_network_interface", {"TagSpecifications": [{"ResourceType": "subnet", "Tags": []}]}, None),
        ("create_network_interface", {"SecondaryPrivateIpAddressCount": -1}, None),
        ("create_network_interface", {"PrivateIpAddress": "100.64.0.9"}, "UnknownParameter"),
        ("describe_network_interfaces", {"Filters": [{"Name": "colour", "Values": ["red"]}]}, None),
        ("describe_subnets", {"MaxResults": 1001}, None),
        ("describe_route_tables", {"MaxResults": 101}, None),
        ("describe_vpcs", {"NextToken": "made up"}, "InvalidNextToken"),
        ("create_vpc", {"CidrBlock": "10.0.0.0/16"}, "InvalidAction"),
    ],
    ids=str,
)
def test_requests_that_make_no_sense(sandbox: Sandbox, call: str, arguments: dict[str, Any], code: str | None) -> None:
    if call == "create_network_interface":
        arguments = arguments | {"SubnetId": sandbox.subnet_id}
    assert refusal(getattr(sandbox.client, call), **arguments)[0] == (code or "InvalidParameterValue")


@pytest.mark.parametrize(("count", "fits"), [(200, True), (201, False)])
def test_values_per_filter(sandbox: Sandbox, count: int, *, fits: bool) -> None:
    filters = [{"Name": "attachment.instance-id", "Values": [f"i-{number}" for number in range(count)]}]
    if fits:
        assert sandbox.interfaces(Filters=filters) == []
    else:
        assert refusal(sandbox.interfaces, Filters=filters)[0] == "FilterLimitExceeded"


def test_ids_exclude_pages(sandbox: Sandbox) -> None:
    made = sandbox.create()
    asked = {"NetworkInterfaceIds": [made], "MaxResults": 5}
    assert refusal(sandbox.interfaces, **asked)[0] == "InvalidParameterCombination"
    asked = {"InstanceIds": [sandbox.launch()], "MaxResults": 5}
    assert refusal(sandbox.client.describe_instances, **asked)[0] == "InvalidParameterCombination"


def test_listing_too_many_at_once(sandbox: Sandbox) -> None:
    for _ in range(3):
        sandbox.create()
    sandbox.control.set_knobs(unpaginated_limit=2)
    by_tag = [{"Name": "tag-key", "Values": ["x"]}]
    by_vpc = [{"Name": "vpc-id", "Values": [sandbox.built.vpc_id]}]
    assert refusal(sandbox.interfaces)[0] == "OperationNotPermitted"
    assert refusal(sandbox.interfaces, Filters=by_tag)[0] == "OperationNotPermitted"
    assert len(sandbox.interfaces(Filters=by_vpc)) == 3
    assert len(sandbox.interfaces(MaxResults=5)) == 3
