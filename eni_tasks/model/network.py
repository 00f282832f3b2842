"""EC2's side of the world: interfaces, subnets, groups, limits, as frozen values.

`msgspec.Struct` gives the JSON form in Redis for free and ignores fields it does not know, so that
workers of neighbouring versions can read each other's records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

NodeName = NewType("NodeName", str)
InstanceId = NewType("InstanceId", str)
InterfaceId = NewType("InterfaceId", str)
SubnetId = NewType("SubnetId", str)
VpcId = NewType("VpcId", str)


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all values: frozen, keyword-only, compared by content."""


class Interface(Value, frozen=True):
    """A network interface (ENI) as EC2 describes it.

    `primary_address` is "" for an interface without private IPv4 (IPv6 only, or for EFA only).
    `addresses` are the secondary addresses in EC2's order, without the primary (`primary_address`).
    `prefixes` are delegated /28 blocks, not expanded; `ipv6_prefixes` are /80 blocks, `ipv6_addresses` single ones.
    `device_index` is None while unattached. `public_address` belongs to the primary address.
    `attachment_status` is EC2's: attaching, attached, detaching, detached, or "" while unattached.
    """

    id: InterfaceId
    subnet_id: SubnetId
    vpc_id: VpcId
    primary_address: str
    mac: str = ""
    description: str = ""
    availability_zone: str = ""
    status: str = "in-use"
    instance_id: InstanceId = InstanceId("")
    device_index: int | None = None
    network_card: int = 0
    attachment_id: str = ""
    attachment_status: str = ""
    delete_on_termination: bool = False
    addresses: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    ipv6_addresses: tuple[str, ...] = ()
    ipv6_prefixes: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    public_address: str = ""
    owner_id: str = ""
    requester_managed: bool = False


class Vpc(Value, frozen=True):
    """A VPC; `secondary_cidrs` are the blocks that are associated with it beside the primary one."""

    id: VpcId
    primary_cidr: str
    secondary_cidrs: tuple[str, ...] = ()


class Subnet(Value, frozen=True):
    """A subnet; `free` is EC2's AvailableIpAddressCount when it was described.

    `ipv6_cidr` is "" for a subnet without IPv6.
    """

    id: SubnetId
    vpc_id: VpcId
    availability_zone: str
    cidr: str
    free: int
    ipv6_cidr: str = ""
    tags: dict[str, str] = {}


class ElasticIp(Value, frozen=True):
    """An Elastic IP that is not associated; `id` is that of its allocation."""

    id: str
    address: str


class SecurityGroup(Value, frozen=True):
    """A security group, for selection by tags."""

    id: str
    vpc_id: VpcId
    tags: dict[str, str] = {}


class RouteTable(Value, frozen=True):
    """A route table with its *explicit* subnet associations (the main table names none)."""

    id: str
    vpc_id: VpcId
    subnet_ids: tuple[SubnetId, ...] = ()


class Limits(Value, frozen=True):
    """What an instance type can carry on `network_card`, its default card: the only one that gets interfaces.

    `ipv4_per_interface` includes the primary address (EC2's Ipv4AddressesPerInterface).
    """

    instance_type: str
    max_interfaces: int
    ipv4_per_interface: int
    ipv6_per_interface: int = 0
    network_card: int = 0
    hypervisor: str = ""
    bare_metal: bool = False

    @property
    def takes_prefixes(self) -> bool:
        """Whether EC2 gives the instance type prefixes, of either family: those built on the Nitro system only.

        EC2 User Guide, "Prefix delegation for Amazon EC2 network interfaces". Bare metal names no hypervisor.
        """
        return self.hypervisor == "nitro" or self.bare_metal


class Infrastructure(Value, frozen=True):
    """What the nodes share: read together, replaced as a whole, `described_at` in Redis seconds.

    `other_vpc_ids` are VPCs without nodes that were asked for, too, because interfaces of nodes are in them.
    """

    vpcs: dict[str, Vpc] = {}
    subnets: dict[str, Subnet] = {}
    security_groups: dict[str, SecurityGroup] = {}
    route_tables: tuple[RouteTable, ...] = ()
    other_vpc_ids: tuple[VpcId, ...] = ()
    described_at: float = 0.0


def ownership(cluster: str) -> dict[str, str]:
    """Give the tags that say an interface was made for this cluster; Cilium's operator uses the same."""
    return {"io.cilium/cilium-managed": "true", "io.cilium/cluster-name": cluster}


def matches(required: Mapping[str, str], tags: Mapping[str, str]) -> bool:
    """Tell whether all required tags are among `tags`, each with that very value.

    An empty requirement always matches; an empty value has to be present and empty, it does not stand for "any".
    """
    return required.items() <= tags.items()
