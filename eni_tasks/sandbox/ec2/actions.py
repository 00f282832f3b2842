"""The calls that are served: their parameters, and how each turns into a change or a read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2 import interfaces, reading
from eni_tasks.sandbox.ec2.refusals import Refused, invalid_value
from eni_tasks.sandbox.ec2.render import interface_xml, items
from eni_tasks.sandbox.ec2.world import OWNER_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.sandbox.ec2.query import Query
    from eni_tasks.sandbox.ec2.world import World

COMMON = {"Action", "Version", "DryRun"}
LISTING = {"Filter", "MaxResults", "NextToken"}
DONE = "<return>true</return>"


def _create(world: World, query: Query) -> str:
    token = query.text("ClientToken", "")
    interface = interfaces.create_interface(
        world,
        subnet_id=query.text("SubnetId"),
        groups=query.texts("SecurityGroupId"),
        secondary_count=_count(query, "SecondaryPrivateIpAddressCount", 0),
        description=query.text("Description", ""),
        tags=_tags(query),
        client_token=token,
    )
    return f"<networkInterface>{interface_xml(world, interface)}</networkInterface><clientToken>{token}</clientToken>"


def _count(query: Query, name: str, default: int | None = None) -> int:
    count = query.integer(name, default)
    if count < (1 if default is None else 0):
        raise invalid_value(f"Value ({count}) for parameter {name} is invalid.")
    return count


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
    attachment = interfaces.attach_interface(
        world,
        interface_id=query.text("NetworkInterfaceId"),
        instance_id=query.text("InstanceId"),
        device_index=query.integer("DeviceIndex"),
        network_card=query.integer("NetworkCardIndex") if query.has("NetworkCardIndex") else None,
    )
    card = f"<networkCardIndex>{attachment.network_card}</networkCardIndex>"
    return f"<attachmentId>{attachment.id}</attachmentId>{card}"


def _detach(world: World, query: Query) -> str:
    interfaces.detach_interface(world, attachment_id=query.text("AttachmentId"))
    return DONE


def _delete(world: World, query: Query) -> str:
    interfaces.delete_interface(world, interface_id=query.text("NetworkInterfaceId"))
    return DONE


def _modify(world: World, query: Query) -> str:
    attachment = query.struct("Attachment")
    interfaces.set_delete_on_termination(
        world,
        interface_id=query.text("NetworkInterfaceId"),
        attachment_id=attachment.text("AttachmentId"),
        value=attachment.text("DeleteOnTermination").lower() == "true",
    )
    return DONE


def _assign(world: World, query: Query) -> str:
    interface_id = query.text("NetworkInterfaceId")
    count = _count(query, "SecondaryPrivateIpAddressCount")
    addresses = interfaces.assign_addresses(world, interface_id=interface_id, count=count)
    assigned = (f"<privateIpAddress>{address}</privateIpAddress>" for address in addresses)
    named = f"<networkInterfaceId>{interface_id}</networkInterfaceId>"
    return f"{named}{items('assignedPrivateIpAddressesSet', assigned)}{DONE}"


def _unassign(world: World, query: Query) -> str:
    addresses = query.texts("PrivateIpAddress")
    if not addresses:
        raise Refused("MissingParameter", "The request must contain the parameter privateIpAddress")
    interfaces.unassign_addresses(world, interface_id=query.text("NetworkInterfaceId"), addresses=addresses)
    return DONE


def _identity(world: World, query: Query) -> str:
    """STS' call, since the same endpoint is often set for all of AWS."""
    del world, query
    arn, account = f"arn:aws:iam::{OWNER_ID}:user/sandbox", f"<Account>{OWNER_ID}</Account>"
    return f"<GetCallerIdentityResult><Arn>{arn}</Arn><UserId>sandbox</UserId>{account}</GetCallerIdentityResult>"


class Actions:
    """The calls by name."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[set[str], Callable[[World, Query], str]]] = {
            "DescribeVpcs": (LISTING | {"VpcId"}, reading.VPCS.describe),
            "DescribeSubnets": (LISTING | {"SubnetId"}, reading.SUBNETS.describe),
            "DescribeSecurityGroups": (LISTING | {"GroupId"}, reading.GROUPS.describe),
            "DescribeRouteTables": (LISTING | {"RouteTableId"}, reading.ROUTE_TABLES.describe),
            "DescribeInstances": (LISTING | {"InstanceId"}, reading.INSTANCES.describe),
            "DescribeInstanceTypes": ({"InstanceType", "MaxResults"}, reading.describe_instance_types),
            "DescribeNetworkInterfaces": (LISTING | {"NetworkInterfaceId"}, reading.InterfaceReader().describe),
            "CreateNetworkInterface": (
                {"SubnetId", "SecurityGroupId", "SecondaryPrivateIpAddressCount", "Description"}
                | {"TagSpecification", "ClientToken"},
                _create,
            ),
            "AttachNetworkInterface": (
                {"NetworkInterfaceId", "InstanceId", "DeviceIndex", "NetworkCardIndex"},
                _attach,
            ),
            "DetachNetworkInterface": ({"AttachmentId", "Force"}, _detach),
            "DeleteNetworkInterface": ({"NetworkInterfaceId"}, _delete),
            "ModifyNetworkInterfaceAttribute": ({"NetworkInterfaceId", "Attachment"}, _modify),
            "AssignPrivateIpAddresses": ({"NetworkInterfaceId", "SecondaryPrivateIpAddressCount"}, _assign),
            "GetCallerIdentity": (set(), _identity),
            "UnassignPrivateIpAddresses": ({"NetworkInterfaceId", "PrivateIpAddress"}, _unassign),
        }

    def apply(self, action: str, world: World, query: Query) -> str:
        """Carry out a call.

        Returns:
            The elements of its answer.

        Raises:
            Refused: an action or parameter that isn't served, or what the call itself refuses.
        """
        parameters, call = self.known(action)
        query.only(parameters | COMMON)
        return call(world, query)

    def known(self, action: str) -> tuple[set[str], Callable[[World, Query], str]]:
        """Returns a call's parameters and function, or refuses an unknown one."""
        if action not in self._calls:
            raise Refused("InvalidAction", f"The action {action} is not valid for this web service.")
        return self._calls[action]
