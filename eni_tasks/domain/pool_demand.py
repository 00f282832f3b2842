"""What an agent of Cilium 1.20 or later asks for and holds, read from `spec.ipam.pools`.

Such an agent writes how many addresses it wants in all, and the blocks that it hands addresses out from; which of them
pods use it does not say. An agent of 1.19 that took over fills `status.ipam.used` again and leaves the pools behind, so
`used` decides who is at work.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import TYPE_CHECKING

import msgspec

from eni_tasks.model.cilium_node import (
    CiliumNode,
    EarlierPreAllocate,
    EniSpec,
    IpamSpec,
    IpamStatus,
    PoolNeed,
    Pools,
    Spec,
    Status,
)
from eni_tasks.model.node import PoolDemand

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_POOL = "default"  # the only pool of ENI mode
AGENT_PRE_ALLOCATE = 8  # of an agent whose object gives none
REQUEST_SECONDS = 60.0  # an agent computes its request at least this often


def pool_demand(obj: CiliumNode, now: float = 0.0) -> PoolDemand | None:
    """Read the demand of an agent of Cilium 1.20 or later.

    Args:
        obj: the CiliumNode.
        now: the present in Redis seconds; an earlier pre-allocate that was noted counts until its time.

    Returns:
        The demand; None if `status.ipam.used` says how many addresses are in use, as with older agents. An entry of
        the agent's list that is no block of addresses is left out.
    """
    need = _need(obj)
    if need is None or ((obj.status or Status()).ipam or IpamStatus()).used:
        return None
    earlier = obj.requested_with
    changing = earlier is not None and now < earlier.until
    pools = _ipam(obj).pools or Pools()
    listed = {
        cidr
        for held in pools.allocated or ()
        if held and held.pool == DEFAULT_POOL
        for cidr in held.cidrs or ()
        if _is_block(cidr)
    }
    return PoolDemand(
        ipv4=max(0, need.ipv4_addrs or 0),
        ipv6=max(0, need.ipv6_addrs or 0),
        pre_allocate=earlier.pre_allocate if earlier and changing else _pre_allocate(obj),
        listed=frozenset(listed),
        changing=changing,
    )


def asked_before_change(obj: CiliumNode, before: CiliumNode) -> bool:
    """Say whether an agent's request may have been computed with an earlier pre-allocate than the object's.

    Args:
        obj: the object as it is now.
        before: the version before it, with its own note.
    """
    need, same = _need(obj), obj.metadata.uid == before.metadata.uid
    changed = _pre_allocate(obj) != _pre_allocate(before) or before.requested_with is not None
    return need is not None and same and changed and need == _need(before)


def with_earlier_pre_allocate(obj: CiliumNode, before: CiliumNode, now: float) -> CiliumNode:
    """Note with which pre-allocate a request was made that is as it was before (see `asked_before_change`).

    Read with the new figure, the request would mean another number of addresses in use.

    Args:
        obj: the object as it is now.
        before: the version before it, with its own note.
        now: the present in Redis seconds.
    """
    noted = before.requested_with
    if noted is None or noted.until <= now:
        noted = EarlierPreAllocate(pre_allocate=_pre_allocate(before), until=now + REQUEST_SECONDS)
    if noted.pre_allocate == _pre_allocate(obj):
        return obj
    return msgspec.structs.replace(obj, requested_with=noted)


def covered(addresses: Iterable[str], blocks: Iterable[str]) -> frozenset[str]:
    """Select the IPv4 addresses that are in one of the blocks; blocks of other families cover none."""
    networks = [network for block in blocks if isinstance(network := ip_network(block), IPv4Network)]
    held = {(network.prefixlen, int(network.network_address)) for network in networks}
    masks = {network.prefixlen: int(network.netmask) for network in networks}
    return frozenset(
        address
        for address in addresses
        if any((length, int(IPv4Address(address)) & mask) in held for length, mask in masks.items())
    )


def _need(obj: CiliumNode) -> PoolNeed | None:
    requested = (_ipam(obj).pools or Pools()).requested or ()
    return next((each.needed or PoolNeed() for each in requested if each and each.pool == DEFAULT_POOL), None)


def _ipam(obj: CiliumNode) -> IpamSpec:
    return (obj.spec or Spec()).ipam or IpamSpec()


def _pre_allocate(obj: CiliumNode) -> int:
    eni = (obj.spec or Spec()).eni or EniSpec()
    return _ipam(obj).pre_allocate or eni.pre_allocate or AGENT_PRE_ALLOCATE


def _is_block(cidr: str) -> bool:
    try:
        ip_network(cidr)
    except ValueError:
        return False
    return True
