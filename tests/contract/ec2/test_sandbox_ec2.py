"""What both EC2s do the same: our sandbox, checked by moto (somebody else's code) through boto3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from contract.ec2_servers import Cloud

TAGS = [{"ResourceType": "network-interface", "Tags": [{"Key": "team", "Value": "net & <co>"}]}]


def create(cloud: Cloud, **options: Any) -> dict[str, Any]:
    options = {"SubnetId": cloud.subnet_id, "Groups": [cloud.group_id]} | options
    return cloud.client.create_network_interface(**options)["NetworkInterface"]


def attach(cloud: Cloud, interface_id: str, index: int) -> str:
    return cloud.client.attach_network_interface(
        NetworkInterfaceId=interface_id, InstanceId=cloud.instance_id, DeviceIndex=index
    )["AttachmentId"]


def described(cloud: Cloud, **filters: str) -> list[str]:
    asked = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]
    answer = cloud.client.describe_network_interfaces(Filters=asked)
    return [each["NetworkInterfaceId"] for each in answer["NetworkInterfaces"]]


def test_created_interface_says_what_was_asked(cloud: Cloud) -> None:
    made = create(cloud, Description="for pods", SecondaryPrivateIpAddressCount=3, TagSpecifications=TAGS)
    assert (made["Status"], made["Description"]) in {("available", "for pods"), ("pending", "for pods")}
    assert (made["SubnetId"], made["VpcId"]) == (cloud.subnet_id, cloud.vpc_id)
    assert [group["GroupId"] for group in made["Groups"]] == [cloud.group_id]
    assert made["TagSet"] == TAGS[0]["Tags"]
    assert [each["Primary"] for each in made["PrivateIpAddresses"]] == [True, False, False, False]
    assert made["PrivateIpAddresses"][0]["PrivateIpAddress"] == made["PrivateIpAddress"]


def test_attached_interface_is_found_by_its_instance(cloud: Cloud) -> None:
    made = create(cloud)["NetworkInterfaceId"]
    attachment = attach(cloud, made, 1)
    [shown] = cloud.client.describe_network_interfaces(NetworkInterfaceIds=[made])["NetworkInterfaces"]
    assert shown["Status"] == "in-use"
    place = shown["Attachment"]
    assert (place["InstanceId"], place["DeviceIndex"], place["AttachmentId"]) == (cloud.instance_id, 1, attachment)
    assert made in described(cloud, **{"attachment.instance_id": cloud.instance_id})
    cloud.client.detach_network_interface(AttachmentId=attachment)
    [shown] = cloud.client.describe_network_interfaces(NetworkInterfaceIds=[made])["NetworkInterfaces"]
    assert shown["Status"] == "available"
    assert made not in described(cloud, **{"attachment.instance_id": cloud.instance_id})


def test_primary_interface_is_at_index_0(cloud: Cloud) -> None:
    asked = [{"Name": "attachment.instance-id", "Values": [cloud.second_instance_id]}]
    [primary] = cloud.client.describe_network_interfaces(Filters=asked)["NetworkInterfaces"]
    assert primary["Attachment"]["DeviceIndex"] == 0


def test_assigned_addresses_are_taken_away_again(cloud: Cloud) -> None:
    made = create(cloud)["NetworkInterfaceId"]
    cloud.client.assign_private_ip_addresses(NetworkInterfaceId=made, SecondaryPrivateIpAddressCount=2)
    [shown] = cloud.client.describe_network_interfaces(NetworkInterfaceIds=[made])["NetworkInterfaces"]
    first, second = (each["PrivateIpAddress"] for each in shown["PrivateIpAddresses"] if not each["Primary"])
    cloud.client.unassign_private_ip_addresses(NetworkInterfaceId=made, PrivateIpAddresses=[first])
    [shown] = cloud.client.describe_network_interfaces(NetworkInterfaceIds=[made])["NetworkInterfaces"]
    assert [each["PrivateIpAddress"] for each in shown["PrivateIpAddresses"]] == [shown["PrivateIpAddress"], second]


def test_subnet_counts_free_addresses(cloud: Cloud) -> None:
    def free() -> int:
        [subnet] = cloud.client.describe_subnets(SubnetIds=[cloud.subnet_id])["Subnets"]
        return subnet["AvailableIpAddressCount"]

    before = free()
    made = create(cloud, SecondaryPrivateIpAddressCount=4)["NetworkInterfaceId"]
    assert free() == before - 5
    cloud.client.delete_network_interface(NetworkInterfaceId=made)
    assert free() == before


@pytest.mark.parametrize(
    "filters",
    [
        {"tag:team": "filter me"},
        {"tag:team": "filter me", "status": "available"},
        {"tag:team": "filter me", "vpc_id": "VPC"},
        {"tag:team": "filter me", "subnet_id": "SUBNET"},
        {"tag:team": "filter *"},
        {"tag_key": "only-here"},
        {"description": "*one of a kind*"},
    ],
    ids=str,
)
def test_filters_find_the_one(cloud: Cloud, filters: dict[str, str]) -> None:
    tags = [{"Key": "team", "Value": "filter me"}, {"Key": "only-here", "Value": ""}]
    specification = [{"ResourceType": "network-interface", "Tags": tags}]
    made = create(cloud, Description="one of a kind", TagSpecifications=specification)["NetworkInterfaceId"]
    known = {"VPC": cloud.vpc_id, "SUBNET": cloud.subnet_id}
    try:
        assert described(cloud, **{name: known.get(value, value) for name, value in filters.items()}) == [made]
        assert described(cloud, **filters | {"status": "in-use"}) == []
    finally:
        cloud.client.delete_network_interface(NetworkInterfaceId=made)


NO_INTERFACE = "eni-0123456789abcdef0"


@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        ("describe_network_interfaces", {"NetworkInterfaceIds": [NO_INTERFACE]}, "InvalidNetworkInterfaceID.NotFound"),
        ("delete_network_interface", {"NetworkInterfaceId": NO_INTERFACE}, "InvalidNetworkInterfaceID.NotFound"),
        ("detach_network_interface", {"AttachmentId": "eni-attach-0"}, "InvalidAttachmentID.NotFound"),
        ("create_network_interface", {"SubnetId": "subnet-0"}, "InvalidSubnetID.NotFound"),
        ("describe_subnets", {"SubnetIds": ["subnet-0"]}, "InvalidSubnetID.NotFound"),
        ("describe_vpcs", {"VpcIds": ["vpc-0"]}, "InvalidVpcID.NotFound"),
        ("describe_instances", {"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceID.NotFound"),
        ("describe_instance_types", {"InstanceTypes": ["zz9.large"]}, "InvalidInstanceType"),
        ("describe_vpcs", {"DryRun": True}, "DryRunOperation"),
        ("create_network_interface", {"SubnetId": "SUBNET", "DryRun": True}, "DryRunOperation"),
        ("delete_network_interface", {"NetworkInterfaceId": NO_INTERFACE, "DryRun": True}, "DryRunOperation"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals_have_the_same_codes(cloud: Cloud, call: str, arguments: dict[str, Any], code: str) -> None:
    if arguments.get("SubnetId") == "SUBNET":
        arguments = arguments | {"SubnetId": cloud.subnet_id}
    with pytest.raises(ClientError) as refused:
        getattr(cloud.client, call)(**arguments)
    assert refused.value.response["Error"]["Code"] == code


def test_unknown_instance_types_are_named(cloud: Cloud) -> None:
    with pytest.raises(ClientError, match=r"types do not exist: \[zz9.large\]"):
        cloud.client.describe_instance_types(InstanceTypes=["zz9.large", "m5.large"])


@pytest.mark.parametrize(
    "name",
    ["t3.small", "t3.medium", "m4.large", "m5.large", "m5.xlarge", "m5.4xlarge", "m5.metal", "c6in.32xlarge"],
)
def test_instance_types_take_the_same(cloud: Cloud, name: str) -> None:
    [shown] = cloud.client.describe_instance_types(InstanceTypes=[name])["InstanceTypes"]
    network = shown["NetworkInfo"]
    cards = [card["MaximumNetworkInterfaces"] for card in network["NetworkCards"]]
    took = (shown.get("Hypervisor"), shown["BareMetal"], cards, network["Ipv4AddressesPerInterface"])
    expected = {
        "t3.small": ("nitro", False, [3], 4),
        "t3.medium": ("nitro", False, [3], 6),
        "m4.large": ("xen", False, [2], 10),
        "m5.large": ("nitro", False, [3], 10),
        "m5.xlarge": ("nitro", False, [4], 15),
        "m5.4xlarge": ("nitro", False, [8], 30),
        "m5.metal": (None, True, [15], 50),
        "c6in.32xlarge": ("nitro", False, [8, 8], 50),
    }
    assert took == expected[name]
    assert network["MaximumNetworkInterfaces"] == sum(cards)
    assert network["DefaultNetworkCardIndex"] == 0


def test_instances_show_state_and_place(cloud: Cloud) -> None:
    answer = cloud.client.describe_instances(InstanceIds=[cloud.instance_id])
    [instance] = answer["Reservations"][0]["Instances"]
    assert instance["State"] == {"Code": 16, "Name": "running"}
    assert (instance["InstanceType"], instance["SubnetId"], instance["VpcId"]) == (
        "m5.large",
        cloud.subnet_id,
        cloud.vpc_id,
    )
    assert instance["NetworkInterfaces"][0]["Attachment"]["DeviceIndex"] == 0


def test_network_is_described_by_vpc(cloud: Cloud) -> None:
    mine = [{"Name": "vpc-id", "Values": [cloud.vpc_id]}]
    subnets = cloud.client.describe_subnets(Filters=mine)["Subnets"]
    groups = cloud.client.describe_security_groups(Filters=mine)["SecurityGroups"]
    tables = cloud.client.describe_route_tables(Filters=mine)["RouteTables"]
    [vpc] = cloud.client.describe_vpcs(Filters=mine)["Vpcs"]
    assert cloud.subnet_id in {subnet["SubnetId"] for subnet in subnets}
    assert {"default", "pods"} <= {group["GroupName"] for group in groups}
    assert vpc["CidrBlockAssociationSet"][0]["CidrBlock"] == vpc["CidrBlock"] == "10.0.0.0/16"
    main = [one for table in tables for one in table["Associations"] if one["Main"]]
    assert [one.get("SubnetId") for one in main] == [None]
