"""The calls that are served: their parameters, and how each becomes a change or a read."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from eni_tasks.sandbox.ec2 import describe, instances, interfaces
from eni_tasks.sandbox.ec2.errors import Ec2Error, invalid_combination, invalid_value, missing
from eni_tasks.sandbox.ec2.interfaces import Addresses
from eni_tasks.sandbox.ec2.records import InterfaceType
from eni_tasks.sandbox.ec2.render import interface_xml, items, prefix_items
from eni_tasks.sandbox.ec2.world import OWNER_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.sandbox.ec2.query import Query
    from eni_tasks.sandbox.ec2.world import World

COMMON = {"Action", "Version", "DryRun"}
LISTING = {"Filter", "MaxResults", "NextToken"}
IPV4 = {"SecondaryPrivateIpAddressCount", "Ipv4PrefixCount", "Ipv4Prefix"}
IPV6 = {"Ipv6AddressCount", "Ipv6PrefixCount"}
DONE = "<return>true</return>"


def _addresses(query: Query) -> Addresses:
    """What a call asks for; in one family, it asks for one thing only."""
    wanted = Addresses(
        ipv4=_count(query, "SecondaryPrivateIpAddressCount"),
        prefixes=_count(query, "Ipv4PrefixCount"),
        named_prefixes=tuple(query.texts("Ipv4Prefix")),
        ipv6=_count(query, "Ipv6AddressCount"),
        ipv6_prefixes=_count(query, "Ipv6PrefixCount"),
    )
    if sum(map(bool, (wanted.ipv4, wanted.prefixes, wanted.named_prefixes))) > 1:
        raise invalid_combination(
            "You can specify only one of secondary-private-ip-address-count, ipv4-prefix-count and ipv4-prefixes."
        )
    if wanted.ipv6 and wanted.ipv6_prefixes:
        names = "ipv6-addresses or ipv6-addresses-count  ipv6-prefix and ipv6-prefix-count"  # EC2's own spelling
        raise invalid_value(f"You can and can only specify one of {names}.")
    return wanted


def _count(query: Query, name: str) -> int:
    count = query.integer(name, 0)
    if count < 0:
        raise invalid_value(f"Value ({count}) for parameter {name} is invalid.")
    return count


def _create(world: World, query: Query) -> str:
    token = query.text("ClientToken", "")
    interface = interfaces.create_interface(
        world,
        subnet_id=query.text("SubnetId"),
        groups=query.texts("SecurityGroupId"),
        wanted=_addresses(query),
        description=query.text("Description", ""),
        tags=_tags(query),
        interface_type=_interface_type(query),
        client_token=token,
    )
    return f"<networkInterface>{interface_xml(world, interface)}</networkInterface><clientToken>{token}</clientToken>"


def _interface_type(query: Query) -> InterfaceType:
    name = query.text("InterfaceType", "interface")
    for known in get_args(InterfaceType):
        if name == known:
            return cast("InterfaceType", known)
    raise invalid_value(f"Value ({name}) for parameter InterfaceType is invalid.")


def _tags(query: Query) -> dict[str, str]:
    tags: dict[str, str] = {}
    for specification in query.structs("TagSpecification"):
        if specification.text("ResourceType") != "network-interface":
            raise invalid_value(
                f"'{specification.text('ResourceType')}' is not a valid taggable resource type for this operation."
            )
        entries = specification.structs("Tag")
        if not entries:
            raise invalid_value("Tag specification must have at least one tag")
        tags |= {entry.text("Key"): entry.text("Value", "") for entry in entries}
    return tags


def _attach(world: World, query: Query) -> str:
    attachment = instances.attach_interface(
        world,
        interface_id=query.text("NetworkInterfaceId"),
        instance_id=query.text("InstanceId"),
        device_index=query.integer("DeviceIndex"),
        network_card=query.integer("NetworkCardIndex") if query.has("NetworkCardIndex") else None,
    )
    card = f"<networkCardIndex>{attachment.network_card}</networkCardIndex>"
    return f"<attachmentId>{attachment.id}</attachmentId>{card}"


def _detach(world: World, query: Query) -> str:
    instances.detach_interface(world, attachment_id=query.text("AttachmentId"))
    return DONE


def _delete(world: World, query: Query) -> str:
    interfaces.delete_interface(world, interface_id=query.text("NetworkInterfaceId"))
    return DONE


def _modify(world: World, query: Query) -> str:
    attachment = query.struct("Attachment")
    instances.set_delete_on_termination(
        world,
        interface_id=query.text("NetworkInterfaceId"),
        attachment_id=attachment.text("AttachmentId"),
        value=attachment.text("DeleteOnTermination").lower() == "true",
    )
    return DONE


def _assign(world: World, query: Query) -> str:
    interface_id, wanted = query.text("NetworkInterfaceId"), _addresses(query)
    if not wanted.ipv4_slots:
        _refuse_nothing(query, "SecondaryPrivateIpAddressCount", IPV4)
    taken = interfaces.assign_addresses(world, interface_id=interface_id, wanted=wanted)
    assigned = (f"<privateIpAddress>{address}</privateIpAddress>" for address in taken.ipv4)
    return (
        f"<networkInterfaceId>{interface_id}</networkInterfaceId>{items('assignedPrivateIpAddressesSet', assigned)}"
        f"{prefix_items('assignedIpv4PrefixSet', 'ipv4Prefix', taken.prefixes)}{DONE}"
    )


def _assign_ipv6(world: World, query: Query) -> str:
    interface_id, wanted = query.text("NetworkInterfaceId"), _addresses(query)
    if not wanted.ipv6_slots:
        _refuse_nothing(query, "Ipv6AddressCount", IPV6)
    taken = interfaces.assign_addresses(world, interface_id=interface_id, wanted=wanted)
    prefixes = items("assignedIpv6PrefixSet", taken.ipv6_prefixes) if taken.ipv6_prefixes else ""
    return (
        f"<networkInterfaceId>{interface_id}</networkInterfaceId>{items('assignedIpv6Addresses', taken.ipv6)}{prefixes}"
    )


def _refuse_nothing(query: Query, default: str, names: set[str]) -> None:
    name = next((each for each in sorted(names) if query.has(each)), default)
    if not query.has(name):
        raise missing(name[0].lower() + name[1:])
    raise invalid_value(f"Value ({query.text(name, '')}) for parameter {name} is invalid.")


def _unassign(world: World, query: Query) -> str:
    addresses, prefixes = query.texts("PrivateIpAddress"), query.texts("Ipv4Prefix")
    if not addresses and not prefixes:
        raise missing("privateIpAddress")
    interface_id = query.text("NetworkInterfaceId")
    interfaces.unassign_addresses(world, interface_id=interface_id, addresses=addresses, prefixes=prefixes)
    return DONE


def _associate(world: World, query: Query) -> str:
    association = interfaces.associate_elastic_ip(
        world,
        allocation_id=query.text("AllocationId"),
        interface_id=query.text("NetworkInterfaceId"),
        private_address=query.text("PrivateIpAddress", ""),
        # Reports show that EC2 refuses without the flag, whatever its reference says (ansible/ansible#27385).
        allow_reassociation=query.flag("AllowReassociation"),
    )
    return f"<associationId>{association.id}</associationId>{DONE}"


def _identity(world: World, query: Query) -> str:
    """STS' call, since the same endpoint is often set for all of AWS."""
    del world, query
    arn, account = f"arn:aws:iam::{OWNER_ID}:user/sandbox", f"<Account>{OWNER_ID}</Account>"
    return f"<GetCallerIdentityResult><Arn>{arn}</Arn><UserId>sandbox</UserId>{account}</GetCallerIdentityResult>"


class Actions:
    """The calls by name."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[set[str], Callable[[World, Query], str]]] = {
            "DescribeVpcs": (LISTING | {"VpcId"}, describe.VPCS.describe),
            "DescribeSubnets": (LISTING | {"SubnetId"}, describe.SUBNETS.describe),
            "DescribeSecurityGroups": (LISTING | {"GroupId"}, describe.GROUPS.describe),
            "DescribeRouteTables": (LISTING | {"RouteTableId"}, describe.ROUTE_TABLES.describe),
            "DescribeInstances": (LISTING | {"InstanceId"}, describe.INSTANCES.describe),
            "DescribeInstanceTypes": ({"InstanceType", "MaxResults"}, describe.describe_instance_types),
            "DescribeNetworkInterfaces": (LISTING | {"NetworkInterfaceId"}, describe.InterfaceReader().describe),
            "DescribeAddresses": ({"Filter", "AllocationId"}, describe.ELASTIC_IPS.describe),
            "CreateNetworkInterface": (
                {"SubnetId", "SecurityGroupId", "Description", "TagSpecification", "ClientToken", "InterfaceType"}
                | IPV4
                | IPV6,
                _create,
            ),
            "AttachNetworkInterface": (
                {"NetworkInterfaceId", "InstanceId", "DeviceIndex", "NetworkCardIndex"},
                _attach,
            ),
            "DetachNetworkInterface": ({"AttachmentId", "Force"}, _detach),
            "DeleteNetworkInterface": ({"NetworkInterfaceId"}, _delete),
            "ModifyNetworkInterfaceAttribute": ({"NetworkInterfaceId", "Attachment"}, _modify),
            "AssignPrivateIpAddresses": ({"NetworkInterfaceId"} | IPV4, _assign),
            "AssignIpv6Addresses": ({"NetworkInterfaceId"} | IPV6, _assign_ipv6),
            "UnassignPrivateIpAddresses": ({"NetworkInterfaceId", "PrivateIpAddress", "Ipv4Prefix"}, _unassign),
            "AssociateAddress": (
                {"AllocationId", "NetworkInterfaceId", "PrivateIpAddress", "AllowReassociation"},
                _associate,
            ),
            "GetCallerIdentity": (set(), _identity),
        }

    def apply(self, action: str, world: World, query: Query) -> str:
        """Carry out a call.

        Returns:
            The elements of its answer.

        Raises:
            Ec2Error: an action or parameter that is not served, or what the call itself refuses.
        """
        parameters, call = self.known(action)
        query.only(parameters | COMMON)
        return call(world, query)

    def known(self, action: str) -> tuple[set[str], Callable[[World, Query], str]]:
        """Returns a call's parameters and function; refuses an unknown one."""
        if action not in self._calls:
            raise Ec2Error("InvalidAction", f"The action {action} is not valid for this web service.")
        return self._calls[action]
