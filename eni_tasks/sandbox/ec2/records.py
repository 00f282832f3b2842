"""What this EC2 keeps: frozen records, replaced as a whole by each change.

Frozen records make late reads simple (an older record stays what it was) and let an XML fragment be
reused for as long as the record is the same object.
"""

from __future__ import annotations

from typing import Literal

import msgspec

InstanceState = Literal["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]
STATE_CODES: dict[InstanceState, int] = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all records; `serial` grows with creation and orders listings."""

    id: str
    serial: int
    tags: dict[str, str] = {}


class Vpc(Record, frozen=True):
    """A VPC with its CIDR blocks."""

    cidr: str
    secondary_cidrs: tuple[str, ...] = ()


class Subnet(Record, frozen=True):
    """A subnet; its free addresses live in the address pool."""

    vpc_id: str
    availability_zone: str
    cidr: str


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


class Interface(Record, frozen=True):
    """A network interface; `addresses` are the secondary ones in the order of their assignment."""

    subnet_id: str
    vpc_id: str
    availability_zone: str
    primary_address: str
    mac: str
    owner_id: str
    created_at: float
    addresses: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    description: str = ""
    requester_managed: bool = False
    attachment: Attachment | None = None

    @property
    def status(self) -> str:
        """EC2's status: an interface whose attachment is still going away is in use."""
        return "in-use" if self.attachment else "available"

    @property
    def instance_id(self) -> str:
        """The instance it is attached to, or ""."""
        return self.attachment.instance_id if self.attachment else ""


class Instance(Record, frozen=True):
    """An instance; `max_interfaces` is what its card 0 really takes, whatever the type's table says."""

    instance_type: str
    subnet_id: str
    vpc_id: str
    availability_zone: str
    private_address: str
    launched_at: float
    state: InstanceState = "running"
    terminated_at: float = 0.0
    max_interfaces: int | None = None


class WorldView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything there is, as it truly is; `free` is by subnet."""

    vpcs: list[Vpc]
    subnets: list[Subnet]
    security_groups: list[SecurityGroup]
    route_tables: list[RouteTable]
    instances: list[Instance]
    interfaces: list[Interface]
    free: dict[str, int]
