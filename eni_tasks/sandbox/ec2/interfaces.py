"""What EC2 does with interfaces and their addresses, and what it refuses.

Each function without "_" is one call, with the checks in EC2's order. The caller holds the world's lock.
"""

from __future__ import annotations

from contextlib import ExitStack
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from eni_tasks.sandbox.ec2.errors import Ec2Error, invalid_combination, invalid_value, not_found
from eni_tasks.sandbox.ec2.records import Association, ElasticIp, Interface, InterfaceType, type_of
from eni_tasks.sandbox.ec2.world import OWNER_ID, new_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from eni_tasks.sandbox.ec2.records import Subnet
    from eni_tasks.sandbox.ec2.world import World

GROUPS_PER_INTERFACE = 5


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """What a call asks for: counts of addresses and prefixes, and IPv4 prefixes by name."""

    ipv4: int = 0
    prefixes: int = 0
    named_prefixes: tuple[str, ...] = ()
    ipv6: int = 0
    ipv6_prefixes: int = 0

    @property
    def ipv4_slots(self) -> int:
        """How many IPv4 slots of an interface it takes."""
        return self.ipv4 + self.prefixes + len(self.named_prefixes)

    @property
    def ipv6_slots(self) -> int:
        """How many IPv6 slots of an interface it takes."""
        return self.ipv6 + self.ipv6_prefixes


NO_ADDRESSES = Addresses()


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What a call got, in the order of its assignment."""

    ipv4: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    ipv6: tuple[str, ...] = ()
    ipv6_prefixes: tuple[str, ...] = ()


# -- create and delete -------------------------------------------------------------------------------
def create_interface(  # noqa: PLR0913 - EC2's own parameters
    world: World,
    *,
    subnet_id: str,
    groups: Sequence[str] = (),
    wanted: Addresses = NO_ADDRESSES,
    description: str = "",
    tags: Mapping[str, str] | None = None,
    interface_type: InterfaceType = "interface",
    client_token: str = "",
) -> Interface:
    """Create an interface, or answer the one that the same token created before.

    It gets a primary IPv4 address besides what is wanted, unless it is of type efa-only or in an IPv6-only
    subnet.

    Raises:
        Ec2Error: no such subnet or group, no room, quota, or the token came with other parameters.
    """
    signature = (subnet_id, tuple(groups), wanted, description, dict(tags or {}), interface_type)
    if client_token in world.client_tokens:
        before, made = world.client_tokens[client_token]
        if before != signature:
            text = "The client token provided is already used with other parameters."
            raise Ec2Error("IdempotentParameterMismatch", text)
        return world.interfaces.truth.by_id.get(made.id, made)
    subnet = world.subnet(subnet_id)
    if len(world.interfaces.truth.by_id) >= world.knobs.interface_quota:
        raise Ec2Error("NetworkInterfaceLimitExceeded", "The maximum number of network interfaces has been reached.")
    checked_groups = _checked_groups(world, subnet, groups)
    if interface_type == "efa-only" and wanted != NO_ADDRESSES:
        raise invalid_combination("EFA-only network interfaces do not support IP addresses.")
    primary_count = 1 if subnet.cidr and interface_type != "efa-only" else 0
    primary, taken = _take(world, subnet, wanted, primary_count)
    serial = world.next_serial()
    interface = Interface(
        id=new_id("eni", serial),
        serial=serial,
        subnet_id=subnet.id,
        vpc_id=subnet.vpc_id,
        availability_zone=subnet.availability_zone,
        primary_address="".join(primary),
        addresses=taken.ipv4,
        prefixes=taken.prefixes,
        ipv6_addresses=taken.ipv6,
        ipv6_prefixes=taken.ipv6_prefixes,
        mac="02:" + ":".join(f"{byte:02x}" for byte in serial.to_bytes(5, "big")),
        owner_id=OWNER_ID,
        created_at=world.clock(),
        groups=checked_groups,
        description=description,
        interface_type=interface_type,
        tags=dict(tags or {}),
    )
    world.keep_interface(interface.id, interface)
    if client_token:
        world.client_tokens[client_token] = (signature, interface)
    return interface


def _checked_groups(world: World, subnet: Subnet, groups: Sequence[str]) -> tuple[str, ...]:
    if len(groups) > GROUPS_PER_INTERFACE:
        text = "The maximum number of security groups per interface has been reached."
        raise Ec2Error("SecurityGroupsPerInterfaceLimitExceeded", text)
    known = {group.id: group for group in world.groups.truth.by_id.values() if group.vpc_id == subnet.vpc_id}
    for group in groups:
        if group not in known:
            raise not_found("group", group)
    default = [group.id for group in known.values() if group.name == "default"]
    return tuple(groups or default)


def delete_interface(world: World, *, interface_id: str) -> None:
    """Delete an available interface.

    Raises:
        Ec2Error: no such interface, or it is attached.
    """
    interface = world.interface(interface_id)
    if interface.attachment:
        text = f"Network interface '{interface.id}' is currently in use."
        raise Ec2Error("InvalidNetworkInterface.InUse", text)
    remove_interface(world, interface)


def remove_interface(world: World, interface: Interface) -> None:
    """Delete an interface without checks, as EC2 itself does on termination; its Elastic IPs become free."""
    if interface.attachment:
        world.attachments.pop(interface.attachment.id)
    for association in interface.associations:
        _disassociate(world, association)
    world.keep_interface(interface.id, None)
    _give_back(world, interface, (*interface.private_addresses, *interface.prefixes))
    if interface.ipv6_slots:
        world.ipv6_pools[interface.subnet_id].give_back((*interface.ipv6_addresses, *interface.ipv6_prefixes))


# -- addresses and prefixes --------------------------------------------------------------------------
def _take(world: World, subnet: Subnet, wanted: Addresses, primary_count: int = 0) -> tuple[tuple[str, ...], Taken]:
    """Take addresses from a subnet's pools: all or none, as the last step before the effect of a call.

    Returns:
        The primary address if one was wanted, and the others.
    """
    if (wanted.ipv4_slots or primary_count) and not subnet.cidr:
        raise invalid_combination(f"The subnet {subnet.id} does not support IPv4 addresses.")
    if wanted.ipv6_slots and not subnet.ipv6_cidr:
        raise invalid_value(f"The subnet {subnet.id} does not have an IPv6 CIDR block associated.")
    single: tuple[str, ...] = ()
    prefixes = wanted.named_prefixes
    ipv6: tuple[str, ...] = ()
    ipv6_prefixes: tuple[str, ...] = ()
    with ExitStack() as undo:
        if wanted.ipv4_slots or primary_count:
            pool = world.usable_pool(subnet.id)
            single = pool.take(primary_count + wanted.ipv4)
            undo.callback(pool.give_back, single)
            pool.claim(wanted.named_prefixes)
            undo.callback(pool.give_back, wanted.named_prefixes)
            prefixes += pool.take_prefixes(wanted.prefixes)
            undo.callback(pool.give_back, prefixes[len(wanted.named_prefixes) :])
        if wanted.ipv6_slots:
            ipv6_pool = world.ipv6_pools[subnet.id]
            ipv6 = ipv6_pool.take(wanted.ipv6)
            undo.callback(ipv6_pool.give_back, ipv6)
            ipv6_prefixes = ipv6_pool.take_prefixes(wanted.ipv6_prefixes)
        undo.pop_all()  # all are taken: nothing is undone
    taken = Taken(ipv4=single[primary_count:], prefixes=prefixes, ipv6=ipv6, ipv6_prefixes=ipv6_prefixes)
    return single[:primary_count], taken


def _give_back(world: World, interface: Interface, names: Sequence[str]) -> None:
    if names:
        world.pools[interface.subnet_id].give_back(names)


def assign_addresses(world: World, *, interface_id: str, wanted: Addresses) -> Taken:
    """Assign more addresses or prefixes of either family.

    Returns:
        The new ones.

    Raises:
        Ec2Error: no such interface, more than the instance's type takes, or no room in the subnet.
    """
    interface = world.interface(interface_id)
    if interface.interface_type == "efa-only":
        raise invalid_combination("EFA-only network interfaces do not support IP addresses.")
    instance = world.instances.truth.by_id.get(interface.instance_id)
    if instance is not None:
        kind = type_of(instance)
        if (wanted.prefixes or wanted.named_prefixes or wanted.ipv6_prefixes) and not kind.takes_prefixes:
            raise prefixes_not_supported(kind.name)
        limit = kind.ipv4_per_interface
        over_ipv4 = wanted.ipv4_slots and interface.ipv4_slots + wanted.ipv4_slots > limit
        if over_ipv4 or (wanted.ipv6_slots and interface.ipv6_slots + wanted.ipv6_slots > limit):
            # EC2's code for IPv4. The one for IPv6 is not documented; the same is used.
            raise Ec2Error("PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit.")
    _, taken = _take(world, world.subnet(interface.subnet_id), wanted)
    changed = replace(
        interface,
        addresses=interface.addresses + taken.ipv4,
        prefixes=interface.prefixes + taken.prefixes,
        ipv6_addresses=interface.ipv6_addresses + taken.ipv6,
        ipv6_prefixes=interface.ipv6_prefixes + taken.ipv6_prefixes,
    )
    world.keep_interface(interface.id, changed)
    return taken


def prefixes_not_supported(instance_type: str) -> Ec2Error:
    """Returns the error for prefixes on a type that takes none. EC2's own code and text are not documented."""
    return Ec2Error("UnsupportedOperation", f"Prefixes are not supported for instance type {instance_type}.")


def unassign_addresses(
    world: World, *, interface_id: str, addresses: Collection[str] = (), prefixes: Collection[str] = ()
) -> None:
    """Take secondary addresses and prefixes away, all or none; their Elastic IPs become free.

    Raises:
        Ec2Error: no such interface, or one of them is not a secondary address or prefix of it.
    """
    interface = world.interface(interface_id)
    if not (set(addresses) <= set(interface.addresses) and set(prefixes) <= set(interface.prefixes)):
        raise invalid_value(f"Some of the specified addresses are not assigned to interface {interface.id}")
    world.on_release("UnassignPrivateIpAddresses", interface, (*addresses, *prefixes))
    for association in interface.associations:
        if association.private_address in addresses:
            _disassociate(world, association)
    interface = world.interfaces.truth.by_id[interface_id]
    kept_addresses = tuple(address for address in interface.addresses if address not in addresses)
    kept_prefixes = tuple(prefix for prefix in interface.prefixes if prefix not in prefixes)
    world.keep_interface(interface.id, replace(interface, addresses=kept_addresses, prefixes=kept_prefixes))
    _give_back(world, interface, (*addresses, *prefixes))


# -- Elastic IPs -------------------------------------------------------------------------------------
def allocate_elastic_ip(world: World, tags: Mapping[str, str] | None = None) -> ElasticIp:
    """Allocate an Elastic IP; its address is of 198.18.0.0/15, which no real network has."""
    serial = world.next_serial()
    public_ip = str(IPv4Address("198.18.0.0") + len(world.elastic_ips.truth.by_id))
    identifier = new_id("eipalloc", serial)
    address = ElasticIp(id=identifier, serial=serial, public_ip=public_ip, tags=dict(tags or {}))
    world.put(world.elastic_ips, address.id, address)
    return address


def associate_elastic_ip(
    world: World,
    *,
    allocation_id: str,
    interface_id: str,
    private_address: str = "",
    allow_reassociation: bool = False,
) -> Association:
    """Associate an Elastic IP with a private address of an interface.

    Args:
        world: where.
        allocation_id: of the Elastic IP.
        interface_id: of the interface.
        private_address: one of its addresses; "" means the primary one.
        allow_reassociation: take the Elastic IP off where it is.

    Raises:
        Ec2Error: nothing there, or one of both is associated already.
    """
    elastic_ip = world.elastic_ip(allocation_id)
    interface = world.interface(interface_id)
    private = private_address or interface.primary_address
    if not private or private not in interface.private_addresses:
        raise invalid_value(f"Invalid value '{private}' for PrivateIpAddress. It is not assigned to {interface.id}.")
    before = elastic_ip.association
    if before is not None:
        if not allow_reassociation:
            raise _already_associated(before)
        _disassociate(world, before)
        interface = world.interfaces.truth.by_id[interface_id]
    for other in interface.associations:
        if other.private_address == private:
            raise _already_associated(other)
    association = Association(
        id=new_id("eipassoc", world.next_serial()),
        allocation_id=allocation_id,
        public_ip=elastic_ip.public_ip,
        interface_id=interface.id,
        private_address=private,
    )
    world.put(world.elastic_ips, elastic_ip.id, replace(elastic_ip, association=association))
    world.keep_interface(interface.id, replace(interface, associations=(*interface.associations, association)))
    return association


def _already_associated(association: Association) -> Ec2Error:
    text = f"resource {association.allocation_id} is already associated with associate-id {association.id}"
    return Ec2Error("Resource.AlreadyAssociated", text)


def _disassociate(world: World, association: Association) -> None:
    elastic_ip = world.elastic_ips.truth.by_id[association.allocation_id]
    world.put(world.elastic_ips, elastic_ip.id, replace(elastic_ip, association=None))
    interface = world.interfaces.truth.by_id[association.interface_id]
    left = tuple(each for each in interface.associations if each.id != association.id)
    world.keep_interface(interface.id, replace(interface, associations=left))
