"""Reads a CiliumNode object, of any generation, into the effective `Node`.

Per field the later place wins if it is set (not absent, empty or 0), else the place of Cilium 1.6,
else the default. What cannot be meant is refused here, by name of the field, so that an absurd
object stops nobody but itself; what is merely large is left to `capacity`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from eni_tasks.domain.fields import Fields
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, NodeName, SubnetId, VpcId
from eni_tasks.model.node import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

IGNORE_ANNOTATION = "ipam.cilium.io/ignore"
_DEFAULT_POOL = "default"
_SPACE = re.compile(r"\s")
_INSTANCE_ID = re.compile(r"i-[0-9A-Za-z_-]+")


def parse_node(obj: Mapping[str, Any]) -> Node:
    """Read a CiliumNode.

    An empty instance id is no mistake here: agents publish the object before they know it.

    Args:
        obj: the object as the API server gives it.

    Returns:
        The effective reading.

    Raises:
        InvalidInput: a field holds what it cannot mean; names the node and the field.
    """
    name = Fields(obj, "CiliumNode without a name").fields("metadata").string("name")
    if not name:
        raise InvalidInput("CiliumNode without metadata.name: it cannot be served.")
    root = Fields(obj, f"CiliumNode {name}")
    metadata, spec, status = root.fields("metadata"), root.fields("spec"), root.fields("status")
    eni, ipam, status_ipam = spec.fields("eni"), spec.fields("ipam"), status.fields("ipam")
    later_id, older_id = spec.string("instance-id"), eni.string("instance-id")
    uid = metadata.string("uid")
    if not uid:
        raise metadata.refuse("uid", "is empty")
    return Node(
        name=NodeName(name),
        uid=uid,
        resource_version=metadata.string("resourceVersion"),
        instance_id=_instance_id(spec if later_id else eni, later_id or older_id),
        instance_type=eni.string("instance-type"),
        vpc_id=VpcId(eni.string("vpc-id")),
        availability_zone=eni.string("availability-zone"),
        node_subnet_id=SubnetId(eni.string("node-subnet-id")),
        min_allocate=ipam.count("min-allocate") or eni.count("min-allocate"),
        # Negative is legal in the older place only: "keep min-allocate and nothing beyond".
        pre_allocate=ipam.count("pre-allocate") or eni.count("pre-allocate", negative=True),
        max_allocate=ipam.count("max-allocate"),
        max_above_watermark=ipam.count("max-above-watermark") or eni.count("max-above-watermark"),
        first_interface_index=eni.count("first-interface-index"),
        security_groups=eni.strings("security-groups"),
        security_group_tags=eni.string_map("security-group-tags"),
        subnet_ids=eni.strings("subnet-ids"),
        subnet_tags=eni.string_map("subnet-tags"),
        exclude_interface_tags=eni.string_map("exclude-interface-tags"),
        static_ip_tags=ipam.string_map("static-ip-tags"),
        delete_on_termination=eni.flag("delete-on-termination", default=True),
        use_primary_address=eni.flag("use-primary-address"),
        disable_prefix_delegation=eni.flag("disable-prefix-delegation"),
        used=frozenset(status_ipam.mapping("used")),
        pool=_pool(ipam),
        release_ips=status_ipam.string_map("release-ips"),
        assigned_static_ip=status_ipam.string("assigned-static-ip"),
        requested_ipv4=_requested_ipv4(ipam.fields("pools")),
        allocated_cidrs=_allocated_cidrs(ipam.fields("pools")),
        old_generation=not later_id and bool(older_id),
        deleting=bool(metadata.string("deletionTimestamp")),
        ignored=metadata.string_map("annotations").get(IGNORE_ANNOTATION) == "true",
    )


def machine_of(obj: Mapping[str, Any]) -> tuple[InstanceId, str]:
    """Read which instance an object stands for, whatever else may be wrong with it.

    Args:
        obj: the object as the API server gives it.

    Returns:
        Instance id and instance type; each "" where nothing usable is said.
    """
    try:
        spec = Fields(obj, "CiliumNode").fields("spec")
        eni = spec.fields("eni")
        instance_id = _instance_id(eni, spec.string("instance-id") or eni.string("instance-id"))
        instance_type = eni.string("instance-type")
    except InvalidInput:
        return InstanceId(""), ""
    return instance_id, "" if _SPACE.search(instance_type) else instance_type


def _instance_id(place: Fields, value: str) -> InstanceId:
    # A malformed id must not reach a filter, where it could match the interfaces of others.
    if value and not _INSTANCE_ID.fullmatch(value):
        raise place.refuse("instance-id", f"is {value!r}, not an EC2 instance id")
    return InstanceId(value)


def _pool(ipam: Fields) -> dict[str, str]:
    pool = ipam.fields("pool")
    return {address: pool.fields(address).string("resource") for address in ipam.mapping("pool")}


def _requested_ipv4(pools: Fields) -> int | None:
    for entry in pools.each("requested"):
        if entry.string("pool") == _DEFAULT_POOL:
            return entry.fields("needed").count("ipv4-addrs")
    return None


def _allocated_cidrs(pools: Fields) -> tuple[str, ...]:
    for entry in pools.each("allocated"):
        if entry.string("pool") == _DEFAULT_POOL:
            return entry.strings("cidrs")
    return ()
