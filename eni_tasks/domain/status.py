"""What a CiliumNode should show, and the writes that bring it there, one after the other.

Written are `status.eni.enis`, `spec.ipam.pool`, `status.ipam.release-ips`, the pre-allocate default where there is
none, `status.ipam.used` only as {} where it is absent, `status.ipam.assigned-static-ip`, and
`status.ipam.operator-status.error`. Agents ignore an update as a whole if one interface lacks its VPC, or if a pool
address names an interface that does not list it. So whatever is not fully known is held back, and no version of an
object may be torn, not even between two writes: an address leaves the pool before its interface leaves the status, and
enters the pool after its interface has entered the status. Sending, and what follows from a conflict, is the publish
service's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from eni_tasks.domain import capacity, release, static_address
from eni_tasks.domain.addresses import pod_addresses
from eni_tasks.domain.eni_entries import eni_entries, usable_pool
from eni_tasks.domain.given_up import given_up_addresses
from eni_tasks.domain.json_patch import Operation, PatchWriter, Path
from eni_tasks.errors import InvalidInput
from eni_tasks.model.cilium_node import (
    CiliumNode,
    Eni,
    EniSpec,
    EniStatus,
    IpamSpec,
    IpamStatus,
    OperatorStatus,
    PoolEntry,
    Spec,
    Status,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eni_tasks.model.node import Policy
    from eni_tasks.model.state import NodeState

_ENIS = ("status", "eni", "enis")
_USED = ("status", "ipam", "used")
_RELEASES = ("status", "ipam", "release-ips")
_ERROR = ("status", "ipam", "operator-status", "error")
_STATIC_ADDRESS = ("status", "ipam", "assigned-static-ip")
_POOL = ("spec", "ipam", "pool")


class Desired(NamedTuple):
    """What an object should show; None: nothing is known, so nothing is written.

    `enis` are entries of `status.eni.enis` by interface id, `pool` maps address to interface id, `release_ips` maps
    address to state. With `pools` the agent takes its addresses from the entries, and `status.ipam.used` is its alone.
    `static_address` is "" if the instance's first interface has no public address.
    """

    enis: dict[str, Eni] | None
    pool: dict[str, str] | None
    release_ips: dict[str, str] | None
    pre_allocate_default: int | None
    trouble: str | None
    pools: bool = False
    static_address: str | None = None


class Write(NamedTuple):
    """One write: JSON Patch operations for the status subresource, or for the object itself."""

    to_status: bool
    operations: list[Operation]


def next_write(obj: CiliumNode, state: NodeState, policy: Policy) -> Write | None:
    """Give the next write that brings an object to what its state says.

    Args:
        obj: the object as it is now; after a write, the API server's answer.
        state: the node and its facts.
        policy: what the settings decide for all nodes.

    Returns:
        The write; None if nothing differs. An object is complete after at most three.

    Raises:
        InvalidInput: the object can't be understood.
    """
    if obj.problem:
        raise InvalidInput(obj.problem)
    target = desired(obj, state, policy)
    for to_status, operations in (
        (False, _pool_removals(obj, target)),
        (True, _status_changes(obj, target)),
        (False, _spec_changes(obj, target)),
    ):
        if operations:
            return Write(to_status, operations)
    return None


def desired(obj: CiliumNode, state: NodeState, policy: Policy) -> Desired:
    """Work out what an object should show.

    Args:
        obj: the object as it is; what is held back stays as it shows it.
        state: the node and its facts.
        policy: what the settings decide for all nodes.

    Returns:
        Everything that is known; without an instance id, or for a node that is left alone, nothing.
    """
    node, interfaces, limits = state.node, state.interfaces, state.limits
    if node.ignored or node.deleting or not node.instance_id:
        return Desired(None, None, None, None, None)
    if not state.owns_instance:
        # Its addresses are another node's: two agents must not hand out the same. Before a read nothing is withdrawn.
        nothing: dict[str, Any] | None = None if interfaces is None else {}
        return Desired(nothing, nothing, None, None, state.memory.trouble)
    if not interfaces or limits is None:
        return Desired(None, None, None, None, state.memory.trouble)
    enis = eni_entries(obj, state)
    default = capacity.pre_allocate_default(limits, node, interfaces, policy.pre_allocate_default)
    # An agent of 1.19 that takes over from one of 1.20 hands addresses out from the pool.
    withdrawn = release.asked_addresses(state, release.Contract.WITHDRAWAL) | given_up_addresses(state)
    return Desired(
        enis,
        {address: each for address, each in usable_pool(state, enis).items() if address not in withdrawn},
        _release_ips(obj, state),
        default,
        state.memory.trouble,
        pools=node.demand is not None,
        static_address=static_address.assigned(state),
    )


def _release_ips(obj: CiliumNode, state: NodeState) -> dict[str, str]:
    shown = {address: mark or "" for address, mark in (_shown_releases(obj) or {}).items()}
    held = {address for each in state.interfaces or () for address in pod_addresses(each, state.node)}
    return release.marks(shown, asked=release.asked_addresses(state, release.Contract.HANDSHAKE), held=held)


def _pool_removals(obj: CiliumNode, target: Desired) -> list[Operation]:
    """Take out of the pool what it should not show: before the status loses the interface."""
    writer = PatchWriter(obj)
    shown = _shown_pool(obj) or {}
    for address in sorted(shown.keys() - (target.pool if target.pool is not None else shown).keys()):
        writer.remove((*_POOL, address))
    return writer.operations()


def _status_changes(obj: CiliumNode, target: Desired) -> list[Operation]:
    writer = PatchWriter(obj)
    shown = (obj.status or Status()).ipam or IpamStatus()
    if target.enis is not None:
        if shown.used is None and not target.pools:
            writer.put(_USED, {})
        _put_entries(writer, _ENIS, _shown_enis(obj), target.enis)
    if target.release_ips is not None:
        _put_entries(writer, _RELEASES, _shown_releases(obj), target.release_ips)
    if target.static_address:
        if shown.assigned_static_ip != target.static_address:
            writer.put(_STATIC_ADDRESS, target.static_address)
    elif target.static_address is not None and shown.assigned_static_ip is not None:
        writer.remove(_STATIC_ADDRESS)
    error = (shown.operator_status or OperatorStatus()).error
    if target.trouble:
        if error != target.trouble:
            writer.put(_ERROR, target.trouble)
    elif target.trouble is not None and error is not None:
        writer.remove(_ERROR)
    return writer.operations()


def _spec_changes(obj: CiliumNode, target: Desired) -> list[Operation]:
    writer = PatchWriter(obj)
    if target.pre_allocate_default:
        _put_pre_allocate(writer, obj.spec or Spec(), target.pre_allocate_default)
    if target.pool is not None:
        entries = {address: PoolEntry(resource=interface_id) for address, interface_id in target.pool.items()}
        _put_entries(writer, _POOL, _shown_pool(obj), entries)
    return writer.operations()


def _shown_pool(obj: CiliumNode) -> dict[str, PoolEntry | None] | None:
    return ((obj.spec or Spec()).ipam or IpamSpec()).pool


def _shown_enis(obj: CiliumNode) -> dict[str, Eni | None] | None:
    return ((obj.status or Status()).eni or EniStatus()).enis


def _shown_releases(obj: CiliumNode) -> dict[str, str | None] | None:
    return ((obj.status or Status()).ipam or IpamStatus()).release_ips


def _put_entries(
    writer: PatchWriter,
    path: Path,
    shown: Mapping[str, msgspec.Struct | str | None] | None,
    wanted: Mapping[str, msgspec.Struct | str],
) -> None:
    if shown is None:
        if wanted:
            writer.put(path, wanted)
        return
    for key in sorted(shown.keys() - wanted.keys()):
        writer.remove((*path, key))
    for key, entry in wanted.items():
        found = shown.get(key)
        if found != entry and _content(found) != _content(entry):
            writer.put((*path, key), entry)


def _put_pre_allocate(writer: PatchWriter, spec: Spec, default: int) -> None:
    eni, ipam = spec.eni or EniSpec(), spec.ipam or IpamSpec()
    if not (eni.pre_allocate or ipam.pre_allocate):
        place = "ipam" if spec.instance_id else "eni"
        writer.put(("spec", place, "pre-allocate"), default)


def _content(value: object) -> Any:
    # EC2 promises no order of addresses and groups; another order, or an empty list, is no reason to write.
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: _content(inner) for name, inner in fields if inner}
    return sorted(value) if isinstance(value, tuple) else value
