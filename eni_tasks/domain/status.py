"""What a CiliumNode should show, and the smallest writes that bring it there.

Ours are `status.eni.enis`, `spec.ipam.pool`, the pre-allocate default where there is none,
`status.ipam.used` only as {} where it is absent, and `status.ipam.operator-status.error`. Agents drop
an update as a whole if one interface lacks its VPC or a pool address names an interface that does
not list it, so whatever is not yet fully known is held back. Sending, conflicts and the order of the
two writes are the publish service's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from eni_tasks.domain import capacity
from eni_tasks.domain.addresses import pod_addresses, pool
from eni_tasks.domain.json_patch import Operation, PatchWriter, Path, value_at

if TYPE_CHECKING:
    from eni_tasks.model.network import Infrastructure, Interface
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState

_ENIS = ("status", "eni", "enis")
_USED = ("status", "ipam", "used")
_ERROR = ("status", "ipam", "operator-status", "error")
_POOL = ("spec", "ipam", "pool")
_OURS: frozenset[Path] = frozenset({_ENIS[:2], _ERROR[:3], _POOL})


class Desired(NamedTuple):
    """What an object should show; None: nothing is known, so nothing is written.

    `enis` are entries of `status.eni.enis` by interface id, `pool` maps address to interface id.
    """

    enis: dict[str, dict[str, Any]] | None
    pool: dict[str, str] | None
    pre_allocate_default: int | None
    trouble: str | None


def writes(obj: Mapping[str, Any], state: NodeState, policy: Policy) -> tuple[list[Operation], list[Operation]]:
    """Give the operations that bring an object to what its state says.

    The second list should be asked for again with the object that the status write answered: it may
    hold on to the version that it was computed from.

    Args:
        obj: the object as it was read, at or after the state's.
        state: the node and its facts.
        policy: what the operator decided for all nodes.

    Returns:
        JSON Patch operations for the status subresource and for the object; empty where nothing
        differs.
    """
    return patches(obj, desired(obj, state, policy))


def desired(obj: Mapping[str, Any], state: NodeState, policy: Policy) -> Desired:
    """Work out what an object should show.

    Args:
        obj: the object as it is; what is held back stays as it shows it.
        state: the node and its facts.
        policy: what the operator decided for all nodes.

    Returns:
        Everything that is known; without an instance id, or for a node that is left alone, nothing.
    """
    node, interfaces, limits = state.node, state.interfaces, state.limits
    if node.ignored or node.deleting or not node.instance_id:
        return Desired(None, None, None, None)
    if not interfaces or limits is None:
        return Desired(None, None, None, state.memory.trouble)
    enis: dict[str, dict[str, Any]] = {}
    for interface in interfaces:
        if interface.attachment_status == "attached":
            entry = eni_entry(interface, node, state.infrastructure) or _acceptable(obj, interface)
            if entry is not None:
                enis[interface.id] = entry
    addresses = {
        address: interface_id
        for address, interface_id in pool(interfaces, node).items()
        if interface_id in enis and address in enis[interface_id].get("addresses", ())
    }
    default = capacity.pre_allocate_default(limits, node.first_interface_index, policy.pre_allocate_default)
    return Desired(enis, addresses, default, state.memory.trouble)


def eni_entry(interface: Interface, node: Node, infrastructure: Infrastructure) -> dict[str, Any] | None:
    """Build an interface's entry of `status.eni.enis`; empty values are left out, as the agents do.

    Args:
        interface: an attached interface.
        node: its node.
        infrastructure: for the blocks of its subnet and VPC.

    Returns:
        The entry, or None while its subnet's or VPC's block is unknown.
    """
    subnet = infrastructure.subnets.get(interface.subnet_id)
    vpc = infrastructure.vpcs.get(interface.vpc_id)
    if subnet is None or vpc is None or not subnet.cidr or not vpc.primary_cidr:
        return None
    vpc_entry = {
        "id": vpc.id,
        "primary-cidr": vpc.primary_cidr,
        "cidrs": [cidr for cidr in vpc.secondary_cidrs if cidr],
    }
    entry: dict[str, Any] = {
        "id": interface.id,
        "ip": interface.primary_address,
        "mac": interface.mac,
        "description": interface.description,
        "number": interface.device_index,
        "subnet": {"id": subnet.id, "cidr": subnet.cidr},
        "vpc": _without_empty(vpc_entry),
        "addresses": list(pod_addresses(interface, node)),
        "prefixes": list(interface.prefixes),
        "tags": dict(interface.tags),
        "public-ip": interface.public_address,
    }
    return _without_empty(entry) | {"security-groups": list(interface.security_groups)}


def patches(obj: Mapping[str, Any], target: Desired) -> tuple[list[Operation], list[Operation]]:
    """Compare an object with what it should show.

    Args:
        obj: the object as it was read.
        target: from `desired`.

    Returns:
        JSON Patch operations for the status subresource and for the object; empty where nothing
        differs. Each list begins with a test on the uid.
    """
    status, spec = PatchWriter(obj, _OURS), PatchWriter(obj, _OURS)
    if target.enis is not None:
        if not isinstance(value_at(obj, _USED), Mapping):
            status.put(_USED, {})
        _put_entries(status, _ENIS, value_at(obj, _ENIS), target.enis)
    if target.trouble:
        if value_at(obj, _ERROR) != target.trouble:
            status.put(_ERROR, target.trouble)
    elif target.trouble is not None and value_at(obj, _ERROR) is not None:
        status.remove(_ERROR)
    if target.pre_allocate_default:
        _put_pre_allocate(spec, obj, target.pre_allocate_default)
    if target.pool is not None:
        entries = {address: {"resource": interface_id} for address, interface_id in target.pool.items()}
        _put_entries(spec, _POOL, value_at(obj, _POOL), entries)
    return status.operations(), spec.operations()


def _acceptable(obj: Mapping[str, Any], interface: Interface) -> dict[str, Any] | None:
    # What the object shows of the interface already, if an agent takes it: pods may live on it.
    entry = value_at(obj, (*_ENIS, interface.id))
    if value_at(obj, (*_ENIS, interface.id, "vpc", "primary-cidr")) and all(entry["vpc"].get("cidrs") or ()):
        return dict(entry)
    return None


def _put_entries(writer: PatchWriter, path: Path, shown: object, wanted: Mapping[str, dict[str, Any]]) -> None:
    if not isinstance(shown, Mapping):
        if wanted:
            writer.put(path, dict(wanted))
        return
    for key in sorted(shown.keys() - wanted.keys()):
        writer.remove((*path, key))
    for key, entry in wanted.items():
        if _comparable(shown.get(key)) != _comparable(entry):
            writer.put((*path, key), entry)


def _put_pre_allocate(writer: PatchWriter, obj: Mapping[str, Any], default: int) -> None:
    older, later = ("spec", "eni", "pre-allocate"), ("spec", "ipam", "pre-allocate")
    if value_at(obj, older) or value_at(obj, later):
        return
    writer.put(later if value_at(obj, ("spec", "instance-id")) else older, default)


def _without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value}


def _comparable(value: Any) -> Any:
    # EC2 promises no order of addresses and groups; another order alone is no reason to write.
    if isinstance(value, Mapping):
        return {key: _comparable(inner) for key, inner in value.items()}
    return sorted(value, key=repr) if isinstance(value, list | tuple) else value
