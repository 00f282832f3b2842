"""A CiliumNode as the API server holds it: the fields that are read or written here, and no others.

Both generations of the object are described: Cilium 1.6 keeps everything in `spec.eni`, later versions moved
the instance id to `spec` and the watermarks to `spec.ipam`. Absent and null read the same, as None. The limits
of strings and numbers are checked while an object is decoded (`eni_tasks.domain.cilium_node.decode_node`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eni_tasks.model.network import Value

_LARGEST_COUNT = 2**31 - 1  # no instance, subnet or account comes near
Count = Annotated[int, Meta(ge=0, le=_LARGEST_COUNT)]
SignedCount = Annotated[int, Meta(ge=-_LARGEST_COUNT, le=_LARGEST_COUNT)]

# These go into calls that serve many nodes. An id with a wildcard would match the interfaces of others, and a
# long one would fail the whole call. An instance id is empty until the agent knows it.
InstanceIdText = Annotated[str, Meta(pattern=r"^(i-[0-9a-z]+)?\Z", max_length=32)]
Identifier = Annotated[str, Meta(pattern=r"^[0-9A-Za-z._-]*\Z", max_length=64)]
# Shown to people in sentences: a control character could move the cursor of a terminal. AWS takes no longer tags.
TagText = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z", max_length=256)]
Tags = dict[TagText, TagText]


def version_key(resource_version: str) -> tuple[int, str]:
    """Give the order of resourceVersions, which are decimal numbers of any length."""
    return len(resource_version), resource_version


class Annotations(Value, frozen=True):
    """`metadata.annotations`; the node is left alone if `ignore` is "true"."""

    ignore: str | None = msgspec.field(default=None, name="ipam.cilium.io/ignore")


class Metadata(Value, frozen=True, rename="camel"):
    """`metadata`; a bookmark of a watch has nothing but the version."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    annotations: Annotations | None = None


class EniSpec(Value, frozen=True, rename="kebab"):
    """`spec.eni`. A `pre_allocate` below 0 means: keep `min_allocate` addresses and nothing beyond."""

    instance_id: InstanceIdText | None = None
    instance_type: Identifier | None = None
    vpc_id: Identifier | None = None
    availability_zone: Identifier | None = None
    node_subnet_id: Identifier | None = None
    min_allocate: Count | None = None
    pre_allocate: SignedCount | None = None
    max_above_watermark: Count | None = None
    first_interface_index: Count | None = None
    security_groups: tuple[Identifier, ...] | None = None
    security_group_tags: Tags | None = None
    subnet_ids: tuple[Identifier, ...] | None = None
    subnet_tags: Tags | None = None
    exclude_interface_tags: Tags | None = None
    delete_on_termination: bool | None = None
    use_primary_address: bool | None = None
    disable_prefix_delegation: bool | None = None


class PoolEntry(Value, frozen=True, gc=False):
    """An address of `spec.ipam.pool`; `resource` is its interface's id."""

    resource: str | None = None


class PoolNeed(Value, frozen=True, rename="kebab"):
    """How many addresses of a pool an agent wants in all: in use, waited for, and free."""

    ipv4_addrs: SignedCount | None = None
    ipv6_addrs: SignedCount | None = None


class PoolRequest(Value, frozen=True):
    """An entry of `spec.ipam.pools.requested`."""

    pool: str | None = None
    needed: PoolNeed | None = None


class PoolHeld(Value, frozen=True):
    """An entry of `spec.ipam.pools.allocated`: the blocks that an agent hands addresses out from."""

    pool: str | None = None
    cidrs: tuple[str, ...] | None = None


class Pools(Value, frozen=True):
    """`spec.ipam.pools`, written by agents of Cilium 1.20 and later."""

    requested: tuple[PoolRequest | None, ...] | None = None
    allocated: tuple[PoolHeld | None, ...] | None = None


class IpamSpec(Value, frozen=True, rename="kebab"):
    """`spec.ipam`."""

    min_allocate: Count | None = None
    pre_allocate: Count | None = None
    max_allocate: Count | None = None
    max_above_watermark: Count | None = None
    static_ip_tags: Tags | None = None
    pool: dict[str, PoolEntry | None] | None = None
    pools: Pools | None = None


class NodeAddress(Value, frozen=True):
    """An entry of `spec.addresses`: an address of the node itself, such as its internal one for Cilium."""

    ip: str | None = None


class AgentAddresses(Value, frozen=True):
    """`spec.health` and `spec.ingress`: addresses that the agent takes for itself."""

    ipv4: str | None = None
    ipv6: str | None = None


class Spec(Value, frozen=True, rename="kebab"):
    """`spec`."""

    addresses: tuple[NodeAddress | None, ...] | None = None
    health: AgentAddresses | None = None
    ingress: AgentAddresses | None = None
    instance_id: InstanceIdText | None = None
    eni: EniSpec | None = None
    ipam: IpamSpec | None = None


class EniSubnet(Value, frozen=True, gc=False):
    """An interface's subnet in `status.eni.enis`."""

    id: str | None = None
    cidr: str | None = None


class EniVpc(Value, frozen=True, rename="kebab"):
    """An interface's VPC in `status.eni.enis`."""

    id: str | None = None
    primary_cidr: str | None = None
    cidrs: tuple[str, ...] | None = None


class Eni(Value, frozen=True, rename="kebab"):
    """An interface of `status.eni.enis`; `number` is its device index."""

    id: str | None = None
    ip: str | None = None
    mac: str | None = None
    description: str | None = None
    number: int | None = None
    subnet: EniSubnet | None = None
    vpc: EniVpc | None = None
    addresses: tuple[str, ...] | None = None
    prefixes: tuple[str, ...] | None = None
    ipv6_prefixes: tuple[str, ...] | None = None
    security_groups: tuple[str, ...] | None = None
    tags: dict[str, str] | None = None
    public_ip: str | None = None


class EniStatus(Value, frozen=True):
    """`status.eni`; `enis` are its interfaces by id."""

    enis: dict[str, Eni | None] | None = None


class UsedEntry(Value, frozen=True, gc=False):
    """An address of `status.ipam.used`; which pod has it is not read."""


class OperatorStatus(Value, frozen=True):
    """`status.ipam.operator-status`; `error` is shown to people."""

    error: str | None = None


class IpamStatus(Value, frozen=True, rename="kebab"):
    """`status.ipam`; `used` is the agent's, `release_ips` maps address to state (see `model.node.Mark`).

    `assigned_static_ip` is the public address of the first interface.
    """

    used: dict[str, UsedEntry | None] | None = None
    release_ips: dict[str, str | None] | None = None
    assigned_static_ip: str | None = None
    operator_status: OperatorStatus | None = None


class Status(Value, frozen=True):
    """`status`."""

    eni: EniStatus | None = None
    ipam: IpamStatus | None = None


class EarlierPreAllocate(Value, frozen=True):
    """The pre-allocate with which an agent computed its request, if the object's own may have changed since.

    It holds until `until` (Redis seconds): by then the agent has computed its request again.
    """

    pre_allocate: int
    until: float


class CiliumNode(Value, frozen=True):
    """One object.

    Two fields are not of the API's. `problem` says why an object could not be understood; then nothing but its name,
    uid and version is known. `requested_with` is noted when the object's pre-allocate changes and its request does not.
    """

    metadata: Metadata = Metadata()
    spec: Spec | None = None
    status: Status | None = None
    problem: str = ""
    requested_with: EarlierPreAllocate | None = None
