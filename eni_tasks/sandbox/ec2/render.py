"""Records as EC2's XML, element by element as in the service model (a test checks every one)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.records import STATE_CODES, CidrBlock
from eni_tasks.sandbox.ec2.world import OWNER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eni_tasks.sandbox.ec2.records import (
        ElasticIp,
        Instance,
        InstanceType,
        Interface,
        RouteTable,
        SecurityGroup,
        Subnet,
        Vpc,
    )
    from eni_tasks.sandbox.ec2.world import World

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


def response(action: str, content: str, request_id: str) -> str:
    """Returns a whole answer."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{NAMESPACE}">'
        f"<requestId>{request_id}</requestId>{content}</{action}Response>"
    )


def error(code: str, message: str, request_id: str) -> str:
    """Returns a whole error answer."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
        f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        f"</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    )


def items(name: str, fragments: Iterable[str]) -> str:
    """Returns a list, empty or not."""
    return f"<{name}>{''.join(f'<item>{each}</item>' for each in fragments)}</{name}>"


def malformed(xml: str, changes: Mapping[str, str | None] | None) -> str:
    """Returns an item with some elements broken.

    Args:
        xml: the item.
        changes: by name of the element, at any depth: what it holds instead, or None if it is missing.
    """
    for name, text in (changes or {}).items():
        instead = "" if text is None else f"<{name}>{escape(text)}</{name}>"
        # A text with a backslash would have a meaning of its own as a replacement.
        xml = instead.join(re.split(f"<{re.escape(name)}>.*?</{re.escape(name)}>", xml, flags=re.DOTALL))
    return xml


def _tags(tags: Mapping[str, str]) -> str:
    return items("tagSet", (f"<key>{escape(key)}</key><value>{escape(value)}</value>" for key, value in tags.items()))


def _flag(value: bool) -> str:  # noqa: FBT001 - a value, not a switch
    return "true" if value else "false"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _groups(world: World, groups: Iterable[str]) -> str:
    named = ((group, world.groups.truth.by_id[group].name) for group in groups)
    return items(
        "groupSet", (f"<groupId>{group}</groupId><groupName>{escape(name)}</groupName>" for group, name in named)
    )


def _addresses(interface: Interface, *, with_ids: bool) -> str:
    public = {each.private_address: each for each in interface.associations}

    def association(address: str) -> str:
        if address not in public:
            return ""
        found = public[address]
        ids = f"<allocationId>{found.allocation_id}</allocationId><associationId>{found.id}</associationId>"
        return (
            f"<association><ipOwnerId>{OWNER_ID}</ipOwnerId><publicIp>{found.public_ip}</publicIp>"
            f"{ids if with_ids else ''}</association>"
        )

    private = (
        f"<privateIpAddress>{address}</privateIpAddress>"
        f"<primary>{_flag(address == interface.primary_address)}</primary>{association(address)}"
        for address in interface.private_addresses
    )
    ipv6 = (f"<ipv6Address>{address}</ipv6Address>" for address in interface.ipv6_addresses)
    return (
        f"{association(interface.primary_address)}{items('privateIpAddressesSet', private)}"
        f"{items('ipv6AddressesSet', ipv6)}{prefix_items('ipv4PrefixSet', 'ipv4Prefix', interface.prefixes)}"
        f"{prefix_items('ipv6PrefixSet', 'ipv6Prefix', interface.ipv6_prefixes)}"
    )


def prefix_items(name: str, element: str, prefixes: Iterable[str]) -> str:
    """Returns a list of prefixes, or nothing if there are none."""
    listed = [f"<{element}>{prefix}</{element}>" for prefix in prefixes]
    return items(name, listed) if listed else ""


def _private_dns(world: World, address: str) -> str:
    return f"ip-{address.replace('.', '-')}.{world.region}.compute.internal"


def _attachment(interface: Interface, *, with_instance: bool) -> str:
    attachment = interface.attachment
    if attachment is None:
        return ""
    instance = f"<instanceId>{attachment.instance_id}</instanceId><instanceOwnerId>{OWNER_ID}</instanceOwnerId>"
    return (
        f"<attachment><attachmentId>{attachment.id}</attachmentId>{instance if with_instance else ''}"
        f"<deviceIndex>{attachment.device_index}</deviceIndex>"
        f"<networkCardIndex>{attachment.network_card}</networkCardIndex><status>{attachment.status}</status>"
        f"<attachTime>{_time(attachment.attached_at)}</attachTime>"
        f"<deleteOnTermination>{_flag(attachment.delete_on_termination)}</deleteOnTermination></attachment>"
    )


def _interface_core(world: World, interface: Interface, *, with_ids: bool) -> str:
    primary = interface.primary_address
    named = (
        f"<privateIpAddress>{primary}</privateIpAddress><privateDnsName>{_private_dns(world, primary)}</privateDnsName>"
    )
    return (
        f"<networkInterfaceId>{interface.id}</networkInterfaceId><subnetId>{interface.subnet_id}</subnetId>"
        f"<vpcId>{interface.vpc_id}</vpcId><description>{escape(interface.description)}</description>"
        f"<ownerId>{interface.owner_id}</ownerId><status>{interface.status}</status>"
        f"<macAddress>{interface.mac}</macAddress>{named if primary else ''}"
        f"<sourceDestCheck>true</sourceDestCheck><interfaceType>{interface.interface_type}</interfaceType>"
        f"{_groups(world, interface.groups)}{_addresses(interface, with_ids=with_ids)}"
    )


def interface_xml(world: World, interface: Interface) -> str:
    """Returns an interface, as its own describe and its creation show it."""
    return (
        f"{_interface_core(world, interface, with_ids=True)}"
        f"<availabilityZone>{interface.availability_zone}</availabilityZone>"
        f"<requesterManaged>{_flag(interface.requester_managed)}</requesterManaged>"
        f"{_attachment(interface, with_instance=True)}{_tags(interface.tags)}"
    )


def instance_xml(world: World, instance: Instance) -> str:
    """Returns an instance in a reservation of its own."""
    attached = sorted(
        world.interfaces.view("DescribeInstances").group(instance.id), key=lambda interface: interface.serial
    )
    interfaces = (
        _interface_core(world, each, with_ids=False) + _attachment(each, with_instance=False) for each in attached
    )
    network = ""
    if instance.state != "terminated":
        network = (
            f"<subnetId>{instance.subnet_id}</subnetId><vpcId>{instance.vpc_id}</vpcId>"
            f"<privateIpAddress>{instance.private_address}</privateIpAddress>"
        )
    item = (
        f"<instanceId>{instance.id}</instanceId><instanceType>{instance.instance_type}</instanceType>"
        f"<instanceState><code>{STATE_CODES[instance.state]}</code><name>{instance.state}</name></instanceState>"
        f"<launchTime>{_time(instance.launched_at)}</launchTime>"
        f"<privateDnsName>{_private_dns(world, instance.private_address)}</privateDnsName>{network}"
        f"<placement><availabilityZone>{instance.availability_zone}</availabilityZone>"
        f"<tenancy>default</tenancy></placement>{items('networkInterfaceSet', interfaces)}{_tags(instance.tags)}"
    )
    reservation = f"r-{instance.serial:017x}"
    return f"<reservationId>{reservation}</reservationId><ownerId>{OWNER_ID}</ownerId>{items('instancesSet', [item])}"


def vpc_xml(_world: World, vpc: Vpc) -> str:
    """Returns a VPC; the set of IPv4 associations has the primary block too, as EC2's does."""
    ipv4 = [CidrBlock(vpc.cidr), *vpc.secondary_blocks]
    return (
        f"<vpcId>{vpc.id}</vpcId><ownerId>{OWNER_ID}</ownerId><state>available</state><cidrBlock>{vpc.cidr}</cidrBlock>"
        f"<instanceTenancy>default</instanceTenancy><isDefault>false</isDefault>"
        f"{_blocks('cidrBlock', f'vpc-cidr-assoc-{vpc.serial:013x}', ipv4)}"
        f"{_blocks('ipv6CidrBlock', f'vpc-cidr-assoc-6{vpc.serial:012x}', vpc.ipv6_blocks)}{_tags(vpc.tags)}"
    )


def _blocks(name: str, association: str, blocks: Iterable[CidrBlock]) -> str:
    listed = [
        f"<associationId>{association}{number:04x}</associationId><{name}>{block.cidr}</{name}>"
        f"<{name}State><state>{block.state}</state></{name}State>"
        for number, block in enumerate(blocks)
    ]
    return items(f"{name}AssociationSet", listed) if listed else ""


def subnet_xml(world: World, subnet: Subnet) -> str:
    """Returns a subnet with the number of its free addresses."""
    available = 0 if subnet.id in world.knobs.exhausted_subnets else subnet.available
    ipv4 = f"<cidrBlock>{subnet.cidr}</cidrBlock>" if subnet.cidr else "<ipv6Native>true</ipv6Native>"
    ipv6 = [CidrBlock(subnet.ipv6_cidr)] if subnet.ipv6_cidr else []
    return (
        f"<subnetId>{subnet.id}</subnetId><ownerId>{OWNER_ID}</ownerId><state>available</state>"
        f"<vpcId>{subnet.vpc_id}</vpcId>{ipv4}<availableIpAddressCount>{available}</availableIpAddressCount>"
        f"<availabilityZone>{subnet.availability_zone}</availabilityZone>"
        f"<defaultForAz>false</defaultForAz><mapPublicIpOnLaunch>false</mapPublicIpOnLaunch>"
        f"{_blocks('ipv6CidrBlock', f'subnet-cidr-assoc-{subnet.serial:013x}', ipv6)}{_tags(subnet.tags)}"
    )


def elastic_ip_xml(_world: World, elastic_ip: ElasticIp) -> str:
    """Returns an Elastic IP and where it is associated."""
    place = ""
    if found := elastic_ip.association:
        place = (
            f"<associationId>{found.id}</associationId><networkInterfaceId>{found.interface_id}</networkInterfaceId>"
            f"<networkInterfaceOwnerId>{OWNER_ID}</networkInterfaceOwnerId>"
            f"<privateIpAddress>{found.private_address}</privateIpAddress>"
        )
    return (
        f"<publicIp>{elastic_ip.public_ip}</publicIp><allocationId>{elastic_ip.id}</allocationId>"
        f"<domain>vpc</domain>{place}{_tags(elastic_ip.tags)}"
    )


def security_group_xml(_world: World, group: SecurityGroup) -> str:
    """Returns a security group without rules."""
    return (
        f"<groupId>{group.id}</groupId><ownerId>{OWNER_ID}</ownerId><groupName>{escape(group.name)}</groupName>"
        f"<groupDescription>{escape(group.name)}</groupDescription><vpcId>{group.vpc_id}</vpcId>"
        f"<ipPermissions/><ipPermissionsEgress/>{_tags(group.tags)}"
    )


def route_table_xml(_world: World, table: RouteTable) -> str:
    """Returns a route table; the main one's association names no subnet."""
    associations = (
        f"<routeTableAssociationId>rtbassoc-{table.serial:013x}{number:04x}</routeTableAssociationId>"
        f"<routeTableId>{table.id}</routeTableId><main>{_flag(not subnet)}</main>"
        + (f"<subnetId>{subnet}</subnetId>" if subnet else "")
        for number, subnet in enumerate((("",) if table.main else ()) + table.subnet_ids)
    )
    return (
        f"<routeTableId>{table.id}</routeTableId><vpcId>{table.vpc_id}</vpcId><ownerId>{OWNER_ID}</ownerId>"
        f"<routeSet/>{items('associationSet', associations)}<propagatingVgwSet/>{_tags(table.tags)}"
    )


def instance_type_xml(instance_type: InstanceType) -> str:
    """Returns an instance type; bare metal names no hypervisor."""
    cards = (
        f"<networkCardIndex>{number}</networkCardIndex><maximumNetworkInterfaces>{count}</maximumNetworkInterfaces>"
        for number, count in enumerate(instance_type.cards)
    )
    hypervisor = f"<hypervisor>{instance_type.hypervisor}</hypervisor>" if instance_type.hypervisor else ""
    return (
        f"<instanceType>{instance_type.name}</instanceType><bareMetal>{_flag(instance_type.bare_metal)}</bareMetal>"
        f"{hypervisor}<vCpuInfo><defaultVCpus>{instance_type.vcpus}</defaultVCpus></vCpuInfo>"
        f"<memoryInfo><sizeInMiB>{instance_type.memory_mib}</sizeInMiB></memoryInfo>"
        f"<networkInfo><maximumNetworkInterfaces>{instance_type.max_interfaces}</maximumNetworkInterfaces>"
        f"<maximumNetworkCards>{len(instance_type.cards)}</maximumNetworkCards>"
        f"<defaultNetworkCardIndex>0</defaultNetworkCardIndex>{items('networkCards', cards)}"
        f"<ipv4AddressesPerInterface>{instance_type.ipv4_per_interface}</ipv4AddressesPerInterface>"
        f"<ipv6AddressesPerInterface>{instance_type.ipv4_per_interface}</ipv6AddressesPerInterface>"
        "<ipv6Supported>true</ipv6Supported></networkInfo>"
    )
