"""Reads an item of EC2's DescribeNetworkInterfaces (or CreateNetworkInterface) into an `Interface`.

Why here and not in the adapter: what an item means to us (which addresses are secondary, what is
skipped) is a decision, and the sandbox and tests need it without boto3. Calls, pages and filters
are the adapter's.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from eni_tasks.domain.fields import Fields
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, Interface, InterfaceId, SubnetId, VpcId

if TYPE_CHECKING:
    from collections.abc import Mapping


def interface_from_item(item: Mapping[str, Any]) -> Interface | None:
    """Read one interface.

    Args:
        item: the item as boto3 gives it.

    Returns:
        The interface, attached or not; None for one without a private IPv4 address, which cannot
        serve pods and must not break the listing of the others.

    Raises:
        InvalidInput: the item cannot be understood; names the interface.
    """
    interface_id = Fields(item, "EC2 interface without an id").string("NetworkInterfaceId")
    if not interface_id:
        raise InvalidInput("EC2 describes an interface without NetworkInterfaceId.")
    top = Fields(item, f"EC2 interface {interface_id}")
    primary = top.string("PrivateIpAddress")
    if not primary:
        return None
    attachment = top.fields("Attachment")
    attached = bool(top.mapping("Attachment"))
    return Interface(
        id=InterfaceId(interface_id),
        subnet_id=SubnetId(top.string("SubnetId")),
        vpc_id=VpcId(top.string("VpcId")),
        primary_address=primary,
        mac=top.string("MacAddress"),
        description=top.string("Description"),
        availability_zone=top.string("AvailabilityZone"),
        status=top.string("Status", "in-use" if attached else "available"),
        instance_id=InstanceId(attachment.string("InstanceId")),
        device_index=attachment.count("DeviceIndex") if attached else None,
        network_card=attachment.count("NetworkCardIndex"),
        attachment_id=attachment.string("AttachmentId"),
        attachment_status=attachment.string("Status", "attached" if attached else ""),
        delete_on_termination=attachment.flag("DeleteOnTermination"),
        addresses=tuple(_secondaries(top)),
        prefixes=tuple(_prefixes(top)),
        security_groups=tuple(group.string("GroupId") for group in top.each("Groups")),
        tags={tag.string("Key"): tag.string("Value") for tag in top.each("TagSet")},
        public_address=top.fields("Association").string("PublicIp"),
        owner_id=top.string("OwnerId"),
        requester_managed=top.flag("RequesterManaged"),
    )


def _secondaries(top: Fields) -> list[str]:
    entries = top.each("PrivateIpAddresses")
    secondaries = (entry.string("PrivateIpAddress") for entry in entries if not entry.flag("Primary"))
    return [address for address in secondaries if address]


def _prefixes(top: Fields) -> list[str]:
    prefixes = [entry.string("Ipv4Prefix") for entry in top.each("Ipv4Prefixes")]
    for prefix in prefixes:
        try:
            IPv4Network(prefix)
        except ValueError as error:
            raise top.refuse("Ipv4Prefixes", f"lists {prefix!r}, not a block of addresses") from error
    return prefixes
