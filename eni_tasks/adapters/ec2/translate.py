"""Turns boto3's items into the model's values: what the nodes share, and instance types.

boto3 has already given every field its type, so the only thing that can be wrong is a missing one.
Interfaces are read by `eni_tasks.domain.interface_item`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import ElasticIp, Limits, RouteTable, SecurityGroup, Subnet, SubnetId, Vpc, VpcId

Item = Mapping[str, Any]


@contextmanager
def _reading(kind: str, item: Item, id_field: str) -> Iterator[None]:
    """Say which item lacks a field."""
    try:
        yield
    except KeyError as error:
        raise InvalidInput(f"{kind} {item.get(id_field, 'without id')} has no {error.args[0]}") from error


def tags_of(item: Item) -> dict[str, str]:
    """Read the tags of any item."""
    return {tag["Key"]: tag.get("Value", "") for tag in item.get("Tags", ())}


def vpc(item: Item) -> Vpc:
    """Read an item of DescribeVpcs.

    Raises:
        InvalidInput: it lacks a field.
    """
    with _reading("VPC", item, "VpcId"):
        primary = item["CidrBlock"]
        # One that is still being associated, failed, or is being taken away routes nothing.
        associated = [
            association["CidrBlock"]
            for association in item.get("CidrBlockAssociationSet", ())
            if association.get("CidrBlockState", {}).get("State") == "associated"
        ]
        return Vpc(
            id=VpcId(item["VpcId"]),
            primary_cidr=primary,
            secondary_cidrs=tuple(cidr for cidr in associated if cidr != primary),
        )


def subnet(item: Item) -> Subnet:
    """Read an item of DescribeSubnets.

    Raises:
        InvalidInput: it lacks a field.
    """
    with _reading("subnet", item, "SubnetId"):
        return Subnet(
            id=SubnetId(item["SubnetId"]),
            vpc_id=VpcId(item["VpcId"]),
            availability_zone=item["AvailabilityZone"],
            cidr=item["CidrBlock"],
            free=item["AvailableIpAddressCount"],
            ipv6_cidr=_ipv6_cidr(item),
            tags=tags_of(item),
        )


def _ipv6_cidr(item: Item) -> str:
    for association in item.get("Ipv6CidrBlockAssociationSet", ()):
        if association.get("Ipv6CidrBlockState", {}).get("State") == "associated":
            return str(association["Ipv6CidrBlock"])
    return ""


def elastic_ip(item: Item) -> ElasticIp:
    """Read an item of DescribeAddresses.

    Raises:
        InvalidInput: it lacks a field.
    """
    with _reading("Elastic IP", item, "AllocationId"):
        return ElasticIp(id=item["AllocationId"], address=item["PublicIp"])


def security_group(item: Item) -> SecurityGroup:
    """Read an item of DescribeSecurityGroups.

    Raises:
        InvalidInput: it lacks a field.
    """
    with _reading("security group", item, "GroupId"):
        return SecurityGroup(id=item["GroupId"], vpc_id=VpcId(item["VpcId"]), tags=tags_of(item))


def route_table(item: Item) -> RouteTable:
    """Read an item of DescribeRouteTables; only explicit associations that are in force count.

    Raises:
        InvalidInput: it lacks a field.
    """
    with _reading("route table", item, "RouteTableId"):
        return RouteTable(
            id=item["RouteTableId"],
            vpc_id=VpcId(item["VpcId"]),
            subnet_ids=tuple(
                SubnetId(association["SubnetId"])
                for association in item.get("Associations", ())
                if "SubnetId" in association and association.get("AssociationState", {}).get("State") == "associated"
            ),
        )


def limits(item: Item) -> Limits:
    """Read an item of DescribeInstanceTypes.

    A type's own MaximumNetworkInterfaces is the sum over its network cards, and we attach to one: the default.

    Raises:
        InvalidInput: it lacks a field or the card that it names as default.
    """
    with _reading("instance type", item, "InstanceType"):
        network = item["NetworkInfo"]
        cards = {card["NetworkCardIndex"]: card["MaximumNetworkInterfaces"] for card in network["NetworkCards"]}
        card = network["DefaultNetworkCardIndex"]
        return Limits(
            instance_type=item["InstanceType"],
            network_card=card,
            max_interfaces=cards[card],
            ipv4_per_interface=network["Ipv4AddressesPerInterface"],
            ipv6_per_interface=network.get("Ipv6AddressesPerInterface", 0),
            hypervisor=item.get("Hypervisor", ""),
            bare_metal=item.get("BareMetal", False),
        )
