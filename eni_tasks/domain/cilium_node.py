"""Decodes a CiliumNode object, of any generation, and reads it into the effective `Node`.

Per field the later place wins if it is set (not absent, empty or 0), else the place of Cilium 1.6,
else the default. An object with a field that can't be understood still exists: it is kept with its name and the
problem, and affects no other node. What is merely large is left to `capacity`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from eni_tasks.domain.pool_demand import pool_demand
from eni_tasks.errors import InvalidInput
from eni_tasks.model.cilium_node import (
    CiliumNode,
    EniSpec,
    EniStatus,
    IpamSpec,
    IpamStatus,
    Metadata,
    Spec,
    Status,
)
from eni_tasks.model.network import InstanceId, NodeName, SubnetId, VpcId
from eni_tasks.model.node import Node


class _MetadataOfAny(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""


class _AnyObject(msgspec.Struct):
    """What every object of the API has, whatever is wrong with the rest."""

    metadata: _MetadataOfAny


_decode = msgspec.json.Decoder(CiliumNode).decode
_decode_any = msgspec.json.Decoder(_AnyObject).decode


def decode_node(raw: bytes | msgspec.Raw) -> CiliumNode:
    """Decode one object from JSON, as the API server gives it or as it is stored.

    Returns:
        The object; if it can't be understood, one with its `problem`, which names the node and the field.

    Raises:
        InvalidInput: it has no name, so it is no object of the API.
    """
    try:
        return _decode(raw)
    except msgspec.MsgspecError as error:
        problem = str(error)
    try:
        metadata = _decode_any(raw).metadata
    except msgspec.MsgspecError:
        raise InvalidInput(f"CiliumNode without a name: {problem}") from None
    return CiliumNode(
        metadata=Metadata(name=metadata.name, uid=metadata.uid, resource_version=metadata.resource_version),
        problem=f"CiliumNode {metadata.name}: {problem}: check the object.",
    )


def parse_node(obj: CiliumNode, now: float = 0.0) -> Node:
    """Read a CiliumNode.

    An empty instance id is no mistake here: agents publish the object before they know it.

    Args:
        obj: the object.
        now: the present in Redis seconds, for what was noted for a while.

    Returns:
        The effective reading.

    Raises:
        InvalidInput: a field holds what it cannot mean; names the node and the field.
    """
    if obj.problem:
        raise InvalidInput(obj.problem)
    metadata = obj.metadata
    if not metadata.name:
        raise InvalidInput("CiliumNode without metadata.name: it cannot be served.")
    if not metadata.uid:
        raise InvalidInput(f"CiliumNode {metadata.name}: metadata.uid is empty: check the object.")
    spec = obj.spec or Spec()
    eni, ipam = spec.eni or EniSpec(), spec.ipam or IpamSpec()
    status = obj.status or Status()
    shown = status.ipam or IpamStatus()
    used = shown.used
    return Node(
        name=NodeName(metadata.name),
        uid=metadata.uid,
        instance_id=InstanceId(spec.instance_id or eni.instance_id or ""),
        instance_type=eni.instance_type or "",
        vpc_id=VpcId(eni.vpc_id or ""),
        availability_zone=eni.availability_zone or "",
        node_subnet_id=SubnetId(eni.node_subnet_id or ""),
        min_allocate=ipam.min_allocate or eni.min_allocate or 0,
        pre_allocate=ipam.pre_allocate or eni.pre_allocate or 0,
        max_allocate=ipam.max_allocate or 0,
        max_above_watermark=ipam.max_above_watermark or eni.max_above_watermark or 0,
        first_interface_index=eni.first_interface_index or 0,
        security_groups=eni.security_groups or (),
        security_group_tags=eni.security_group_tags or {},
        subnet_ids=eni.subnet_ids or (),
        subnet_tags=eni.subnet_tags or {},
        exclude_interface_tags=eni.exclude_interface_tags or {},
        delete_on_termination=eni.delete_on_termination is not False,
        use_primary_address=bool(eni.use_primary_address),
        disable_prefix_delegation=bool(eni.disable_prefix_delegation),
        static_ip_tags=ipam.static_ip_tags or {},
        used=frozenset(used or ()),
        pool={address: entry.resource or "" if entry else "" for address, entry in (ipam.pool or {}).items()},
        shown_interfaces=frozenset((status.eni or EniStatus()).enis or ()),
        release_ips={address: state or "" for address, state in (shown.release_ips or {}).items()},
        demand=pool_demand(obj, now),
        old_fields=not spec.instance_id and bool(eni.instance_id),
        deleting=bool(metadata.deletion_timestamp),
        ignored=metadata.annotations is not None and metadata.annotations.ignore == "true",
    )


def own_addresses(obj: CiliumNode) -> frozenset[str]:
    """List the addresses that a node and its agent have for themselves, both families."""
    spec = obj.spec or Spec()
    named = {each.ip for each in spec.addresses or () if each}
    for part in (spec.health, spec.ingress):
        if part is not None:
            named |= {part.ipv4, part.ipv6}
    return frozenset(address for address in named if address)


def creation_seconds(obj: CiliumNode) -> int:
    """Give when an object was created, in seconds since 1970; 0 if it does not say."""
    try:
        return int(datetime.fromisoformat(obj.metadata.creation_timestamp or "").timestamp())
    except ValueError:
        return 0


def shows_addresses(obj: CiliumNode) -> bool:
    """Say whether an object's pool has an address: the node was served before."""
    return obj.spec is not None and obj.spec.ipam is not None and bool(obj.spec.ipam.pool)


def machine_of(obj: CiliumNode) -> tuple[InstanceId, str]:
    """Give the instance that an object stands for, and its type; each "" where none is named."""
    if obj.spec is None:
        return InstanceId(""), ""
    eni = obj.spec.eni or EniSpec()
    return InstanceId(obj.spec.instance_id or eni.instance_id or ""), eni.instance_type or ""
