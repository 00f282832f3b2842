"""Records as EC2's XML, element by element as in the service model (a test checks every one)."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.records import STATE_CODES
from eni_tasks.sandbox.ec2.world import OWNER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eni_tasks.sandbox.ec2.instance_types import InstanceType
    from eni_tasks.sandbox.ec2.records import Instance, Interface, RouteTable, SecurityGroup, Subnet, Vpc
    from eni_tasks.sandbox.ec2.world import World

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


def response(action: str, content: str, request_id: str) -> str:
    """Returns a whole answer."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{NAMESPACE}">'
        f"<requestId>{request_id}</requestId>{content}</{action}Response>"
    )


def refusal(code: str, message: str, request_id: str) -> str:
    """Returns a whole refusal."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
        f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        f"</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    )


def items(name: str, fragments: Iterable[str]) -> str:
    """Returns a list, empty or not."""
    return f"<{name}>{''.join(f'<item>{each}</item>' for each in fragments)}</{name}>"


def _tags(tags: Mapping[str, str]) -> str:
    return items("tagSet", (f"<key>{escape(key)}</key><value>{escape(value)}</value>" for key, value in tags.items()))


def _flag(value: bool) -> str:  # noqa: FBT001 - a value, not a switch
    return "true" if value else "false"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _groups(world: World, groups: Iterable[str]) -> str:
    named = ((group, world.groups[group].name) for group in groups)
    return items(
        "groupSet", (f"<groupId>{group}</groupId><groupName>{escape(name)}</groupName>" for group, name in named)
    )


def _addresses(interface: Interface) -> str:
    primary = f"<privateIpAddress>{interface.primary_address}</privateIpAddress><primary>true</primary>"
    secondary = (f"<privateIpAddress>{each}</privateIpAddress><primary>false</primary>" for each in interface.addresses)
    return items("privateIpAddressesSet", (primary, *secondary))


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


def _interface_core(world: World, interface: Interface) -> str:
    return (
        f"<networkInterfaceId>{interface.id}</networkInterfaceId><subnetId>{interface.subnet_id}</subnetId>"
        f"<vpcId>{interface.vpc_id}</vpcId><description>{escape(interface.description)}</description>"
        f"<ownerId>{interface.owner_id}</ownerId><status>{interface.status}</status>"
        f"<macAddress>{interface.mac}</macAddress><privateIpAddress>{interface.primary_address}</privateIpAddress>"
        f"<privateDnsName>{_private_dns(world, interface.primary_address)}</privateDnsName>"
        f"<sourceDestCheck>true</sourceDestCheck><interfaceType>interface</interfaceType>"
        f"{_groups(world, interface.groups)}{_addresses(interface)}"
    )


def interface_xml(world: World, interface: Interface) -> str:
    """Returns an interface, as its own describe and its creation show it."""
    return (
        f"{_interface_core(world, interface)}<availabilityZone>{interface.availability_zone}</availabilityZone>"
        f"<requesterManaged>{_flag(interface.requester_managed)}</requesterManaged>"
        f"{_attachment(interface, with_instance=True)}{_tags(interface.tags)}"
    )


def instance_xml(world: World, instance: Instance) -> str:
    """Returns an instance in a reservation of its own."""
    attached = sorted(world.interfaces.shown.group(instance.id), key=lambda interface: interface.serial)
    interfaces = (_interface_core(world, each) + _attachment(each, with_instance=False) for each in attached)
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
    """Returns a VPC; the set of associations has the primary block too, as EC2's does."""
    blocks = (
        f"<associationId>vpc-cidr-assoc-{vpc.serial:013x}{number:04x}</associationId><cidrBlock>{cidr}</cidrBlock>"
        "<cidrBlockState><state>associated</state></cidrBlockState>"
        for number, cidr in enumerate((vpc.cidr, *vpc.secondary_cidrs))
    )
    return (
        f"<vpcId>{vpc.id}</vpcId><ownerId>{OWNER_ID}</ownerId><state>available</state><cidrBlock>{vpc.cidr}</cidrBlock>"
        f"<instanceTenancy>default</instanceTenancy><isDefault>false</isDefault>"
        f"{items('cidrBlockAssociationSet', blocks)}{_tags(vpc.tags)}"
    )


def subnet_xml(world: World, subnet: Subnet) -> str:
    """Returns a subnet with what it has free now."""
    return (
        f"<subnetId>{subnet.id}</subnetId><ownerId>{OWNER_ID}</ownerId><state>available</state>"
        f"<vpcId>{subnet.vpc_id}</vpcId><cidrBlock>{subnet.cidr}</cidrBlock>"
        f"<availableIpAddressCount>{world.free(subnet.id)}</availableIpAddressCount>"
        f"<availabilityZone>{subnet.availability_zone}</availabilityZone>"
        f"<defaultForAz>false</defaultForAz><mapPublicIpOnLaunch>false</mapPublicIpOnLaunch>{_tags(subnet.tags)}"
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
