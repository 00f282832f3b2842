"""The entries of `status.eni.enis`, and which addresses agents can use because of them.

Agents ignore an update as a whole if one interface lacks its subnet's or VPC's block, or if an address of the pool
names an interface that does not list it. So an interface whose subnet EC2 does not list has no entry, and its
addresses count for nothing until it does: the need is served from elsewhere meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain.addresses import pod_addresses, pool
from eni_tasks.domain.eligibility import eligible
from eni_tasks.model.cilium_node import CiliumNode, Eni, EniStatus, EniSubnet, EniVpc, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eni_tasks.model.network import Infrastructure, Interface
    from eni_tasks.model.node import Node
    from eni_tasks.model.state import NodeState


def eni_entries(obj: CiliumNode, state: NodeState) -> dict[str, Eni]:
    """Build the entries of all attached interfaces, on whatever card and in whatever VPC.

    Args:
        obj: the object as it is; what it shows of an interface stays while EC2 does not list the interface's subnet.
        state: the node and its facts.

    Returns:
        Entries by interface id, without interfaces that have no private IPv4 address: agents can't set them up.
    """
    shown = ((obj.status or Status()).eni or EniStatus()).enis or {}
    entries: dict[str, Eni] = {}
    for interface in state.interfaces or ():
        if interface.attachment_status == "attached" and interface.primary_address:
            entry = eni_entry(interface, state.node, state.infrastructure) or _acceptable(shown.get(interface.id))
            if entry is not None:
                entries[interface.id] = entry
    return entries


def eni_entry(interface: Interface, node: Node, infrastructure: Infrastructure) -> Eni | None:
    """Build an interface's entry; empty values are left out, as the agents do.

    Args:
        interface: an attached interface with a private IPv4 address.
        node: its node.
        infrastructure: for the blocks of its subnet and VPC.

    Returns:
        The entry, or None while its subnet's or VPC's block is unknown.
    """
    subnet = infrastructure.subnets.get(interface.subnet_id)
    vpc = infrastructure.vpcs.get(interface.vpc_id)
    if subnet is None or vpc is None or not subnet.cidr or not vpc.primary_cidr:
        return None
    cidrs = tuple(cidr for cidr in vpc.secondary_cidrs if cidr)
    return Eni(
        id=interface.id,
        ip=interface.primary_address,
        mac=interface.mac or None,
        description=interface.description or None,
        number=interface.device_index or None,
        subnet=EniSubnet(id=subnet.id, cidr=subnet.cidr),
        vpc=EniVpc(id=vpc.id, primary_cidr=vpc.primary_cidr, cidrs=cidrs or None),
        addresses=pod_addresses(interface, node) or None,
        prefixes=interface.prefixes or None,
        ipv6_prefixes=interface.ipv6_prefixes or None,
        security_groups=interface.security_groups,
        tags=interface.tags or None,
        public_ip=interface.public_address or None,
    )


def usable_pool(state: NodeState, entries: Mapping[str, Eni]) -> dict[str, str]:
    """Map each address that pods may get to its interface's id, without those that no entry lists.

    Args:
        state: the node and its facts.
        entries: from `eni_entries`.
    """
    return {
        address: interface_id
        for address, interface_id in pool(state.interfaces or (), state.node).items()
        if interface_id in entries and address in (entries[interface_id].addresses or ())
    }


def unlisted(state: NodeState, entries: Mapping[str, Eni]) -> str:
    """Say which interfaces' addresses can't be used because EC2 does not list their subnet or VPC; "" if none.

    Args:
        state: the node and its facts.
        entries: from `eni_entries`.
    """
    hidden = [
        interface
        for interface in eligible(state.interfaces or (), state.node)
        if interface.id not in entries
        or not {*pod_addresses(interface, state.node)} <= {*(entries[interface.id].addresses or ())}
    ]
    if not hidden:
        return ""
    names = ", ".join(f"{i.id} ({_missing(i, state.infrastructure)})" for i in hidden)
    return (
        f"EC2 does not list the network of {names}: what it holds can't be shown to the agent and does not count: "
        "check that the network exists, and that it may be described."
    )


def _missing(interface: Interface, infrastructure: Infrastructure) -> str:
    subnet = infrastructure.subnets.get(interface.subnet_id)
    if subnet is None or not subnet.cidr:
        return f"subnet {interface.subnet_id or '(unset)'}"
    return f"VPC {interface.vpc_id or '(unset)'}"


def _acceptable(entry: Eni | None) -> Eni | None:
    # What the object shows of the interface already, if an agent takes it: pods may live on it.
    vpc = entry.vpc if entry else None
    return entry if vpc and vpc.primary_cidr and all(vpc.cidrs or ()) else None
