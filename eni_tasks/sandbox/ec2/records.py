"""What this EC2 keeps: frozen records, replaced as a whole by each change; and the instance types that it knows.

Because records are frozen, a late read can show an older record as it was, and the XML of a record can be
reused for as long as the record is the same object.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from eni_tasks.sandbox.ec2.errors import Ec2Error

InstanceState = Literal["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]
STATE_CODES: dict[InstanceState, int] = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}
BlockState = Literal["associating", "associated", "disassociating", "disassociated", "failing", "failed"]
InterfaceType = Literal["interface", "efa", "efa-only"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all records; `serial` grows with creation and orders listings."""

    id: str
    serial: int
    tags: dict[str, str] = {}


class CidrBlock(msgspec.Struct, frozen=True):
    """A block of a VPC and the state of its association; only an associated block routes."""

    cidr: str
    state: BlockState = "associated"


class Vpc(Record, frozen=True):
    """A VPC: its primary block, and all others of both families."""

    cidr: str
    secondary_blocks: tuple[CidrBlock, ...] = ()
    ipv6_blocks: tuple[CidrBlock, ...] = ()


class Subnet(Record, frozen=True):
    """A subnet: dual-stack with both blocks, IPv6-only without `cidr`; `available` counts free IPv4 addresses."""

    vpc_id: str
    availability_zone: str
    cidr: str
    ipv6_cidr: str = ""
    available: int = 0


class SecurityGroup(Record, frozen=True):
    """A security group without its rules."""

    vpc_id: str
    name: str


class RouteTable(Record, frozen=True):
    """A route table; the main one is associated implicitly and names no subnet."""

    vpc_id: str
    subnet_ids: tuple[str, ...] = ()
    main: bool = False


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """An interface's place on an instance; `status` is attaching, attached or detaching."""

    id: str
    instance_id: str
    device_index: int
    network_card: int
    status: str
    attached_at: float
    delete_on_termination: bool = False


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An Elastic IP's place on an interface."""

    id: str
    allocation_id: str
    public_ip: str
    interface_id: str
    private_address: str


class ElasticIp(Record, frozen=True):
    """An Elastic IP; its id is the allocation's."""

    public_ip: str
    association: Association | None = None


class Interface(Record, frozen=True):
    """A network interface.

    `addresses` are the secondary ones in the order of their assignment. `primary_address` is "" on an
    interface without IPv4: in an IPv6-only subnet, or of type efa-only.
    """

    subnet_id: str
    vpc_id: str
    availability_zone: str
    primary_address: str
    mac: str
    owner_id: str
    created_at: float
    addresses: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    ipv6_addresses: tuple[str, ...] = ()
    ipv6_prefixes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    description: str = ""
    interface_type: InterfaceType = "interface"
    requester_managed: bool = False
    attachment: Attachment | None = None
    associations: tuple[Association, ...] = ()

    @property
    def status(self) -> str:
        """EC2's status: an interface whose attachment is still going away is in use."""
        return "in-use" if self.attachment else "available"

    @property
    def instance_id(self) -> str:
        """The instance it is attached to, or ""."""
        return self.attachment.instance_id if self.attachment else ""

    @property
    def private_addresses(self) -> tuple[str, ...]:
        """All single IPv4 addresses, the primary one first."""
        return (self.primary_address, *self.addresses) if self.primary_address else self.addresses

    @property
    def ipv4_slots(self) -> int:
        """How many of the slots of its type it takes: one for each address and each prefix."""
        return len(self.private_addresses) + len(self.prefixes)

    @property
    def ipv6_slots(self) -> int:
        """The same for IPv6."""
        return len(self.ipv6_addresses) + len(self.ipv6_prefixes)


class Instance(Record, frozen=True):
    """An instance; `max_interfaces` is what its card 0 really takes, if that differs from the type's figure."""

    instance_type: str
    subnet_id: str
    vpc_id: str
    availability_zone: str
    private_address: str
    launched_at: float
    state: InstanceState = "running"
    max_interfaces: int | None = None


class WorldView(msgspec.Struct, frozen=True, kw_only=True):
    """All records as they truly are; `free` counts free IPv4 addresses by subnet."""

    vpcs: list[Vpc]
    subnets: list[Subnet]
    security_groups: list[SecurityGroup]
    route_tables: list[RouteTable]
    instances: list[Instance]
    interfaces: list[Interface]
    elastic_ips: list[ElasticIp]
    free: dict[str, int]


class InstanceType(msgspec.Struct, frozen=True):
    """An instance type.

    `cards` are the interfaces that each network card takes. `ipv4_per_interface` counts the slots for IPv4
    addresses, the primary one among them, and for prefixes; EC2's figure for IPv6 is the same for these types.
    """

    name: str
    cards: tuple[int, ...]
    ipv4_per_interface: int
    vcpus: int
    memory_mib: int
    hypervisor: str = "nitro"

    @property
    def bare_metal(self) -> bool:
        """Whether the type has no hypervisor."""
        return self.hypervisor == ""

    @property
    def takes_prefixes(self) -> bool:
        """Whether EC2 assigns prefixes on this type: on Nitro and bare metal only."""
        return self.hypervisor != "xen"

    @property
    def max_interfaces(self) -> int:
        """EC2's MaximumNetworkInterfaces: the sum over all cards."""
        return sum(self.cards)


# A few real types in the figures of EC2's own table: the sandbox's only source of limits. They are chosen for their
# shapes: small and large, Xen (no prefixes), bare metal (no hypervisor named), and several network cards, where the
# total says more than card 0 takes.
INSTANCE_TYPES = {
    instance_type.name: instance_type
    for instance_type in (
        InstanceType("t3.micro", (2,), 2, 2, 1024),
        InstanceType("t3.small", (3,), 4, 2, 2048),
        InstanceType("t3.medium", (3,), 6, 2, 4096),
        InstanceType("t3.large", (3,), 12, 2, 8192),
        InstanceType("c5.large", (3,), 10, 2, 4096),
        InstanceType("c5.xlarge", (4,), 15, 4, 8192),
        InstanceType("m4.large", (2,), 10, 2, 8192, "xen"),
        InstanceType("m5.large", (3,), 10, 2, 8192),
        InstanceType("m5.xlarge", (4,), 15, 4, 16384),
        InstanceType("m5.2xlarge", (4,), 15, 8, 32768),
        InstanceType("m5.4xlarge", (8,), 30, 16, 65536),
        InstanceType("m5.metal", (15,), 50, 96, 393216, ""),
        InstanceType("m6g.large", (3,), 10, 2, 8192),
        InstanceType("r5.xlarge", (4,), 15, 4, 32768),
        InstanceType("c6in.32xlarge", (8, 8), 50, 128, 262144),
        InstanceType("p4d.24xlarge", (15, 15, 15, 15), 50, 96, 1179648),
    )
}


def known_types(names: list[str]) -> list[InstanceType]:
    """Look up types by name.

    Args:
        names: the types; none means all.

    Returns:
        The types, in the order of the table.

    Raises:
        Ec2Error: a name is unknown, whatever the others are.
    """
    unknown = [name for name in names if name not in INSTANCE_TYPES]
    if unknown:
        text = f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        raise Ec2Error("InvalidInstanceType", text)
    return [each for name, each in INSTANCE_TYPES.items() if not names or name in names]


def type_of(instance: Instance) -> InstanceType:
    """Returns the type of an instance."""
    return INSTANCE_TYPES[instance.instance_type]


def card_limit(instance: Instance, card: int) -> int:
    """Returns how many interfaces a card of an instance really takes."""
    if card == 0 and instance.max_interfaces is not None:
        return instance.max_interfaces
    return type_of(instance).cards[card]
