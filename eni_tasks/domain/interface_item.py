"""Reads an item of EC2's DescribeNetworkInterfaces (or CreateNetworkInterface) into an `Interface`.

Why here and not in the adapter: what an item means to us (which addresses are secondary, what is
skipped) is a decision, and the sandbox and tests need it without boto3. Calls, pages and filters
are the adapter's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv6Network
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from eni_tasks.domain.prefixes import is_prefix
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, Interface, InterfaceId, SubnetId, VpcId

_Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class _Attachment(msgspec.Struct, rename="pascal"):
    instance_id: str | None = None
    device_index: _Index | None = None
    network_card_index: _Index | None = None
    attachment_id: str | None = None
    status: str | None = None
    delete_on_termination: bool | None = None


class _Address(msgspec.Struct, rename="pascal"):
    private_ip_address: str | None = None
    primary: bool | None = None


class _Prefix(msgspec.Struct, rename="pascal"):
    ipv4_prefix: str | None = None


class _Ipv6Address(msgspec.Struct, rename="pascal"):
    ipv6_address: str | None = None


class _Ipv6Prefix(msgspec.Struct, rename="pascal"):
    ipv6_prefix: str | None = None


class _Group(msgspec.Struct, rename="pascal"):
    group_id: str | None = None


class _Tag(msgspec.Struct, rename="pascal"):
    key: str | None = None
    value: str | None = None


class _Association(msgspec.Struct, rename="pascal"):
    public_ip: str | None = None


class _Item(msgspec.Struct, rename="pascal"):
    """What is read of an item. A field may be missing: EC2 leaves out what is empty."""

    network_interface_id: str
    subnet_id: str | None = None
    vpc_id: str | None = None
    private_ip_address: str | None = None
    mac_address: str | None = None
    description: str | None = None
    availability_zone: str | None = None
    status: str | None = None
    owner_id: str | None = None
    requester_managed: bool | None = None
    attachment: _Attachment | None = None
    association: _Association | None = None
    private_ip_addresses: list[_Address] | None = None
    ipv4_prefixes: list[_Prefix] | None = None
    ipv6_addresses: list[_Ipv6Address] | None = None
    ipv6_prefixes: list[_Ipv6Prefix] | None = None
    groups: list[_Group] | None = None
    tag_set: list[_Tag] | None = None


def interface_from_item(item: Mapping[str, Any]) -> Interface:
    """Read one interface.

    Args:
        item: the item as boto3 gives it.

    Returns:
        The interface, attached or not. One without private IPv4 (IPv6 only, or for EFA only) has an empty
        `primary_address`: it serves no pods, but takes a slot and a device index.

    Raises:
        InvalidInput: the item cannot be understood; names the interface.
    """
    interface_id = item.get("NetworkInterfaceId")
    if not interface_id:
        raise InvalidInput("EC2 describes an interface without NetworkInterfaceId.")
    try:
        read = msgspec.convert(item, _Item)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"EC2 interface {interface_id}: {error}.") from error
    primary, secondaries = _addresses(read)
    attached = bool(item.get("Attachment"))
    attachment = read.attachment or _Attachment()
    if attached:
        # Unknown is not 0, which is the index of the instance's own first interface; nor is it another VPC.
        needed = {"DeviceIndex": attachment.device_index, "SubnetId": read.subnet_id, "VpcId": read.vpc_id}
        for name, value in needed.items():
            if value in (None, ""):
                raise InvalidInput(f"EC2 interface {interface_id}: it is attached and has no {name}.")
    return Interface(
        id=InterfaceId(read.network_interface_id),
        subnet_id=SubnetId(read.subnet_id or ""),
        vpc_id=VpcId(read.vpc_id or ""),
        primary_address=primary,
        mac=read.mac_address or "",
        description=read.description or "",
        availability_zone=read.availability_zone or "",
        status=read.status or ("in-use" if attached else "available"),
        instance_id=InstanceId(attachment.instance_id or ""),
        device_index=attachment.device_index,
        network_card=attachment.network_card_index or 0,
        attachment_id=attachment.attachment_id or "",
        attachment_status=attachment.status or ("attached" if attached else ""),
        delete_on_termination=bool(attachment.delete_on_termination),
        addresses=secondaries,
        prefixes=tuple(_prefixes(read)),
        ipv6_addresses=tuple(address.ipv6_address or "" for address in read.ipv6_addresses or ()),
        ipv6_prefixes=tuple(_ipv6_prefixes(read)),
        security_groups=tuple(group.group_id or "" for group in read.groups or ()),
        tags={tag.key or "": tag.value or "" for tag in read.tag_set or ()},
        public_address=(read.association or _Association()).public_ip or "",
        owner_id=read.owner_id or "",
        requester_managed=bool(read.requester_managed),
    )


def _addresses(read: _Item) -> tuple[str, tuple[str, ...]]:
    """Read the primary address ("" if there is no private IPv4 at all) and the secondary ones."""
    listed = read.private_ip_addresses or []
    firsts = [address.private_ip_address for address in listed if address.primary]
    primary = read.private_ip_address or next(iter(firsts), None) or ""
    if bool(listed) != bool(primary) or not all(address.private_ip_address for address in listed):
        # What it does not list would be taken for lost.
        what = "PrivateIpAddresses is missing, or lists an entry without address, or no primary one"
        raise InvalidInput(f"EC2 interface {read.network_interface_id}: {what}.")
    return primary, tuple(address.private_ip_address or "" for address in listed if not address.primary)


def _prefixes(read: _Item) -> Iterator[str]:
    for prefix in read.ipv4_prefixes or ():
        text = prefix.ipv4_prefix or ""
        if not is_prefix(text):
            what = f"Ipv4Prefixes lists {text!r}, not a /28 prefix of addresses"
            raise InvalidInput(f"EC2 interface {read.network_interface_id}: {what}.")
        yield text


def _ipv6_prefixes(read: _Item) -> Iterator[str]:
    for prefix in read.ipv6_prefixes or ():
        text = prefix.ipv6_prefix or ""
        try:
            IPv6Network(text)
        except ValueError as error:
            what = f"Ipv6Prefixes lists {text!r}, not a block of addresses"
            raise InvalidInput(f"EC2 interface {read.network_interface_id}: {what}.") from error
        yield text
