"""Prefixes, IPv6, interfaces without IPv4, and Elastic IPs on the sandbox's EC2, over HTTP."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

if TYPE_CHECKING:
    from contract.ec2_servers import Sandbox

BLOCK, IPV6_BLOCK = "10.0.240.0/26", "2001:db8:0:1::/64"


def code(call: Any, **options: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**options)
    return str(refused.value.response["Error"]["Code"])


def add_subnet(sandbox: Sandbox, cidr: str = BLOCK, ipv6_cidr: str = IPV6_BLOCK) -> str:
    """A subnet with four /28 blocks, of which the first and the last hold reserved addresses."""
    subnet: str = sandbox.control.add_subnet(sandbox.built.vpc_id, "a", cidr, ipv6_cidr=ipv6_cidr).id
    return subnet


def available(sandbox: Sandbox, subnet: str) -> int:
    found: int = sandbox.client.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"]
    return found


def create(sandbox: Sandbox, subnet: str, **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = sandbox.client.create_network_interface(SubnetId=subnet, **options)["NetworkInterface"]
    return made


def prefixes(item: dict[str, Any]) -> list[str]:
    return [each["Ipv4Prefix"] for each in item["Ipv4Prefixes"]]


def assign(sandbox: Sandbox, interface: str, **wanted: Any) -> dict[str, Any]:
    answer: dict[str, Any] = sandbox.client.assign_private_ip_addresses(NetworkInterfaceId=interface, **wanted)
    return answer


# -- IPv4 prefixes -------------------------------------------------------------------------------------
def test_prefixes_are_created_assigned_and_unassigned(sandbox: Sandbox) -> None:
    subnet = add_subnet(sandbox)
    free = available(sandbox, subnet)
    made = create(sandbox, subnet, Ipv4PrefixCount=1)
    interface = made["NetworkInterfaceId"]
    assert prefixes(made) == ["10.0.240.16/28"]
    assert made["PrivateIpAddress"] == "10.0.240.4"  # a prefix does not replace the primary address
    answer = assign(sandbox, interface, Ipv4PrefixCount=1)
    assert [each["Ipv4Prefix"] for each in answer["AssignedIpv4Prefixes"]] == ["10.0.240.32/28"]
    assert answer["AssignedPrivateIpAddresses"] == []
    assert prefixes(sandbox.interface(interface)) == ["10.0.240.16/28", "10.0.240.32/28"]
    assert available(sandbox, subnet) == free - 1 - 2 * 16
    sandbox.client.unassign_private_ip_addresses(NetworkInterfaceId=interface, Ipv4Prefixes=["10.0.240.16/28"])
    assert prefixes(sandbox.interface(interface)) == ["10.0.240.32/28"]
    assert available(sandbox, subnet) == free - 1 - 16
    sandbox.client.delete_network_interface(NetworkInterfaceId=interface)
    assert available(sandbox, subnet) == free
    assert sandbox.control.violations() == []


def test_a_prefix_by_name(sandbox: Sandbox) -> None:
    subnet = add_subnet(sandbox)
    interface = create(sandbox, subnet)["NetworkInterfaceId"]
    assign(sandbox, interface, Ipv4Prefixes=["10.0.240.32/28"])
    taken = {"NetworkInterfaceId": interface, "Ipv4Prefixes": ["10.0.240.16/28", "10.0.240.32/28"]}
    assert code(sandbox.client.assign_private_ip_addresses, **taken) == "InvalidIPAddress.InUse"
    for wrong in ("10.0.240.0/28", "10.0.240.48/28", "10.0.241.0/28", "10.0.240.16/29", "10.0.240.8/28"):
        wanted = {"NetworkInterfaceId": interface, "Ipv4Prefixes": [wrong]}
        assert code(sandbox.client.assign_private_ip_addresses, **wanted) == "InvalidParameterValue", wrong
    assert prefixes(sandbox.interface(interface)) == ["10.0.240.32/28"]
    # The refused calls took nothing.
    assign(sandbox, interface, Ipv4Prefixes=["10.0.240.16/28"])


def test_a_fragmented_subnet_has_addresses_but_no_block(sandbox: Sandbox) -> None:
    subnet = add_subnet(sandbox)
    sandbox.control.occupy_addresses(subnet, ["10.0.240.20", "10.0.240.47"])
    free = available(sandbox, subnet)
    interface = create(sandbox, subnet)["NetworkInterfaceId"]
    with pytest.raises(ClientError, match="does not have enough free cidr blocks") as refused:
        assign(sandbox, interface, Ipv4PrefixCount=1)
    assert refused.value.response["Error"]["Code"] == "InsufficientCidrBlocks"
    assert code(create, sandbox=sandbox, subnet=subnet, Ipv4PrefixCount=1) == "InsufficientCidrBlocks"
    assert available(sandbox, subnet) == free - 1  # the refused create gave its primary address back
    assert len(assign(sandbox, interface, SecondaryPrivateIpAddressCount=9)["AssignedPrivateIpAddresses"]) == 9
    sandbox.control.vacate_addresses(subnet, ["10.0.240.47"])
    assign(sandbox, interface, Ipv4PrefixCount=1)
    assert prefixes(sandbox.interface(interface)) == ["10.0.240.32/28"]


def test_single_addresses_are_not_taken_from_a_prefix(sandbox: Sandbox) -> None:
    subnet = add_subnet(sandbox)
    interface = create(sandbox, subnet, Ipv4PrefixCount=2)["NetworkInterfaceId"]
    answer = assign(sandbox, interface, SecondaryPrivateIpAddressCount=26)
    single = {each["PrivateIpAddress"] for each in answer["AssignedPrivateIpAddresses"]}
    inside = {str(each) for prefix in prefixes(sandbox.interface(interface)) for each in IPv4Network(prefix)}
    assert not single & inside
    assert available(sandbox, subnet) == 0
    assert sandbox.control.violations() == []


def test_each_prefix_takes_one_slot(sandbox: Sandbox) -> None:
    instance = sandbox.launch("t3.small")  # four slots, the primary address in one of them
    interface = sandbox.create(1, Ipv4PrefixCount=0)
    sandbox.attach(interface, instance)
    too_many = {"NetworkInterfaceId": interface, "Ipv4PrefixCount": 3}
    assert code(sandbox.client.assign_private_ip_addresses, **too_many) == "PrivateIpAddressLimitExceeded"
    assign(sandbox, interface, Ipv4PrefixCount=2)
    one_more = {"NetworkInterfaceId": interface, "SecondaryPrivateIpAddressCount": 1}
    assert code(sandbox.client.assign_private_ip_addresses, **one_more) == "PrivateIpAddressLimitExceeded"
    loose = sandbox.create(0, Ipv4PrefixCount=4)
    place = {"NetworkInterfaceId": loose, "InstanceId": instance, "DeviceIndex": 2, "NetworkCardIndex": 0}
    assert code(sandbox.client.attach_network_interface, **place) == "InvalidInterface.IpAddressLimitExceeded"
    assert sandbox.control.violations() == []


def test_xen_takes_no_prefixes_and_bare_metal_does(sandbox: Sandbox) -> None:
    old, metal = sandbox.launch("m4.large"), sandbox.launch("m5.metal")
    interface = sandbox.create()
    attachment = sandbox.attach(interface, old)
    wanted = {"NetworkInterfaceId": interface, "Ipv4PrefixCount": 1}
    assert code(sandbox.client.assign_private_ip_addresses, **wanted) == "UnsupportedOperation"
    sandbox.client.detach_network_interface(AttachmentId=attachment)
    sandbox.client.assign_private_ip_addresses(**wanted)
    place = {"NetworkInterfaceId": interface, "DeviceIndex": 1, "NetworkCardIndex": 0}
    assert code(sandbox.client.attach_network_interface, InstanceId=old, **place) == "UnsupportedOperation"
    sandbox.client.attach_network_interface(InstanceId=metal, **place)


@pytest.mark.parametrize("wanted", [{"Ipv4PrefixCount": 0}, {}], ids=["none", "nothing"])
def test_an_assign_of_nothing(sandbox: Sandbox, wanted: dict[str, Any]) -> None:
    expected = "InvalidParameterValue" if wanted else "MissingParameter"
    assert code(sandbox.client.assign_private_ip_addresses, NetworkInterfaceId=sandbox.create(), **wanted) == expected


def test_one_thing_of_a_family_at_a_time(sandbox: Sandbox) -> None:
    both = {"SecondaryPrivateIpAddressCount": 1, "Ipv4PrefixCount": 1}
    assert code(sandbox.client.create_network_interface, SubnetId=sandbox.subnet_id, **both) == (
        "InvalidParameterCombination"
    )
    both = {"Ipv6AddressCount": 1, "Ipv6PrefixCount": 1}
    subnet = add_subnet(sandbox)
    assert code(sandbox.client.create_network_interface, SubnetId=subnet, **both) == "InvalidParameterValue"


# -- IPv6 and interfaces without IPv4 ------------------------------------------------------------------
def test_ipv6_in_a_dual_stack_subnet(sandbox: Sandbox) -> None:
    subnet = add_subnet(sandbox)
    [shown] = sandbox.client.describe_subnets(SubnetIds=[subnet])["Subnets"]
    assert [each["Ipv6CidrBlock"] for each in shown["Ipv6CidrBlockAssociationSet"]] == [IPV6_BLOCK]
    made = create(sandbox, subnet, Ipv6PrefixCount=1)
    assert [each["Ipv6Prefix"] for each in made["Ipv6Prefixes"]] == ["2001:db8:0:1:1::/80"]
    interface = made["NetworkInterfaceId"]
    answer = sandbox.client.assign_ipv6_addresses(NetworkInterfaceId=interface, Ipv6AddressCount=2)
    assert answer["AssignedIpv6Addresses"] == ["2001:db8:0:1::4", "2001:db8:0:1::5"]
    answer = sandbox.client.assign_ipv6_addresses(NetworkInterfaceId=interface, Ipv6PrefixCount=1)
    assert answer["AssignedIpv6Prefixes"] == ["2001:db8:0:1:2::/80"]
    shown = sandbox.interface(interface)
    assert [each["Ipv6Address"] for each in shown["Ipv6Addresses"]] == ["2001:db8:0:1::4", "2001:db8:0:1::5"]
    assert len(shown["Ipv6Prefixes"]) == 2
    assert sandbox.control.violations() == []


def test_ipv6_limits(sandbox: Sandbox) -> None:
    instance = sandbox.launch("t3.small")
    interface = create(sandbox, add_subnet(sandbox), Ipv6AddressCount=3)["NetworkInterfaceId"]
    sandbox.attach(interface, instance)
    wanted = {"NetworkInterfaceId": interface, "Ipv6PrefixCount": 2}
    assert code(sandbox.client.assign_ipv6_addresses, **wanted) == "PrivateIpAddressLimitExceeded"
    sandbox.client.assign_ipv6_addresses(NetworkInterfaceId=interface, Ipv6PrefixCount=1)
    only_ipv4 = {"NetworkInterfaceId": sandbox.create(), "Ipv6AddressCount": 1}
    assert code(sandbox.client.assign_ipv6_addresses, **only_ipv4) == "InvalidParameterValue"


@pytest.mark.parametrize("kind", ["IPv6-only", "EFA-only"])
def test_an_interface_without_ipv4_takes_its_place(sandbox: Sandbox, kind: str) -> None:
    instance = sandbox.launch("c6in.32xlarge")
    if kind == "IPv6-only":
        subnet, options = add_subnet(sandbox, cidr=""), {"ipv6_count": 1}
        [shown] = sandbox.client.describe_subnets(SubnetIds=[subnet])["Subnets"]
        assert (shown["Ipv6Native"], shown.get("CidrBlock")) == (True, None)
        assert code(sandbox.client.create_network_interface, SubnetId=subnet, SecondaryPrivateIpAddressCount=1)
    else:
        subnet, options = sandbox.subnet_id, {"interface_type": "efa-only"}
    placed = sandbox.control.add_interface(subnet, instance_id=instance, network_card=1, **options)
    shown = sandbox.interface(placed.id)
    assert (shown.get("PrivateIpAddress"), shown["PrivateIpAddresses"]) == (None, [])
    assert shown["InterfaceType"] == ("interface" if kind == "IPv6-only" else "efa-only")
    assert (shown["Attachment"]["NetworkCardIndex"], shown["Attachment"]["DeviceIndex"]) == (1, 1)
    place = {"NetworkInterfaceId": sandbox.create(), "InstanceId": instance, "DeviceIndex": 1}
    assert code(sandbox.client.attach_network_interface, NetworkCardIndex=1, **place) == "InvalidParameterValue"
    [item] = sandbox.client.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    assert placed.id in {each["NetworkInterfaceId"] for each in item["NetworkInterfaces"]}
    assert sandbox.control.violations() == []
    sandbox.control.remove_interface(placed.id)


def test_an_efa_only_interface_takes_no_addresses(sandbox: Sandbox) -> None:
    made = sandbox.create(InterfaceType="efa-only")
    wanted = {"NetworkInterfaceId": made, "SecondaryPrivateIpAddressCount": 1}
    assert code(sandbox.client.assign_private_ip_addresses, **wanted) == "InvalidParameterCombination"


# -- Elastic IPs ---------------------------------------------------------------------------------------
def test_elastic_ips_are_found_by_tags_and_associated(sandbox: Sandbox) -> None:
    wanted = sandbox.control.allocate_elastic_ip({"purpose": "egress", "stage": "live"})
    sandbox.control.allocate_elastic_ip({"purpose": "egress", "stage": "test"})
    filters = [{"Name": "tag:purpose", "Values": ["egress"]}, {"Name": "tag:stage", "Values": ["live"]}]
    [found] = sandbox.client.describe_addresses(Filters=filters)["Addresses"]
    assert (found["AllocationId"], found["PublicIp"]) == (wanted.id, wanted.public_ip)
    assert "AssociationId" not in found
    interface = sandbox.create(1)
    place = {"AllocationId": wanted.id, "NetworkInterfaceId": interface}
    association = sandbox.client.associate_address(**place)["AssociationId"]
    [found] = sandbox.client.describe_addresses(AllocationIds=[wanted.id])["Addresses"]
    assert (found["AssociationId"], found["NetworkInterfaceId"]) == (association, interface)
    shown = sandbox.interface(interface)
    assert shown["Association"]["PublicIp"] == wanted.public_ip
    assert [each.get("Association", {}).get("PublicIp") for each in shown["PrivateIpAddresses"]] == [
        wanted.public_ip,
        None,
    ]
    with pytest.raises(ClientError, match=f"resource {wanted.id} is already associated with associate-id") as refused:
        sandbox.client.associate_address(**place)
    assert refused.value.response["Error"]["Code"] == "Resource.AlreadyAssociated"


def test_where_an_elastic_ip_can_and_cannot_be(sandbox: Sandbox) -> None:
    first, second = (sandbox.control.allocate_elastic_ip().id for _ in range(2))
    interface, other = sandbox.create(1), sandbox.create()
    secondary = sandbox.interface(interface)["PrivateIpAddresses"][1]["PrivateIpAddress"]
    associate = sandbox.client.associate_address
    associate(AllocationId=first, NetworkInterfaceId=interface, PrivateIpAddress=secondary)
    onto = {"NetworkInterfaceId": interface, "PrivateIpAddress": secondary}
    assert code(associate, AllocationId=second, **onto) == "Resource.AlreadyAssociated"
    assert code(associate, AllocationId="eipalloc-0", **onto) == "InvalidAllocationID.NotFound"
    foreign = {"AllocationId": second, "NetworkInterfaceId": other, "PrivateIpAddress": secondary}
    assert code(associate, **foreign) == "InvalidParameterValue"
    associate(AllocationId=first, NetworkInterfaceId=other, AllowReassociation=True)
    assert "Association" not in sandbox.interface(interface)["PrivateIpAddresses"][1]
    # It outlives its interface.
    sandbox.client.delete_network_interface(NetworkInterfaceId=other)
    [found] = sandbox.client.describe_addresses(AllocationIds=[first])["Addresses"]
    assert "AssociationId" not in found
    associate(AllocationId=first, **onto)
    sandbox.client.unassign_private_ip_addresses(NetworkInterfaceId=interface, PrivateIpAddresses=[secondary])
    assert sandbox.control.violations() == []


# -- the oracle ----------------------------------------------------------------------------------------
def test_a_used_address_inside_a_prefix_that_is_taken_away(sandbox: Sandbox) -> None:
    interface = create(sandbox, add_subnet(sandbox), Ipv4PrefixCount=1)["NetworkInterfaceId"]
    sandbox.control.use_addresses(["10.0.240.21"])
    sandbox.client.unassign_private_ip_addresses(NetworkInterfaceId=interface, Ipv4Prefixes=["10.0.240.16/28"])
    assert sandbox.control.violations() == [f"UnassignPrivateIpAddresses took 10.0.240.21 off {interface} while in use"]


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        ({"addresses": ("10.0.240.21",)}, "10.0.240.21 is on"),
        ({"prefixes": ("10.0.240.48/28",)}, "cannot give"),
        ({"ipv6_addresses": ("2001:db8:0:1:1::7",)}, "is inside 2001:db8:0:1:1::/80"),
        ({"ipv6_prefixes": ("2001:db8:0:1:1::/80",)}, "2001:db8:0:1:1::/80 is on"),
        ({"ipv6_prefixes": ("2001:db8:0:2:1::/80",)}, "cannot give"),
        ({"prefixes": ("10.0.240.32/28",), "instance_type": "m4.large"}, "takes none"),
        ({"ipv6_addresses": tuple(f"2001:db8:0:1::{n}" for n in range(100, 111))}, "takes 10"),
        ({"primary_address": "10.0.240.9"}, "which is not assigned"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_the_oracle_counts_itself(sandbox: Sandbox, damage: dict[str, Any], word: str) -> None:
    """Damages the records without the checks of the calls; the oracle must see it."""
    fields = {name: value for name, value in damage.items() if name != "instance_type"}
    subnet, instance = add_subnet(sandbox), sandbox.launch(damage.get("instance_type", "m5.large"))
    sandbox.control.add_interface(subnet, prefix_count=1, ipv6_prefix_count=1)  # 10.0.240.16/28 and …:1:1::/80
    second = sandbox.control.add_interface(subnet, instance_id=instance)
    elastic_ip = sandbox.control.allocate_elastic_ip().id
    sandbox.client.associate_address(AllocationId=elastic_ip, NetworkInterfaceId=second.id)
    assert sandbox.control.violations() == []
    sandbox.built.world.keep_interface(second.id, replace(second, **fields))
    violations = sandbox.control.violations()
    assert len(violations) == 1, violations
    assert word in violations[0]
