"""The oracle: finds what must never be the case in the records, and says it in sentences.

It relies neither on the address pools nor on the checks of the calls: it counts itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.address_pools import IPV6_PREFIX_LENGTH, PREFIX_SIZE, RESERVED_COUNT
from eni_tasks.sandbox.ec2.records import card_limit, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from eni_tasks.sandbox.ec2.records import Interface, Subnet
    from eni_tasks.sandbox.ec2.world import World


class Oracle:
    """Watches a world.

    A simulation of pods puts the addresses in use into `used`, or sets `used_addresses`, which is called at
    each release.

    Args:
        world: to watch.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._recorded: list[str] = []
        self.used: set[str] = set()
        self.used_addresses: Callable[[], Collection[str]] = lambda: ()
        world.on_release = self._released

    def _released(self, call: str, interface: Interface, names: Sequence[str]) -> None:
        used = self.used.union(self.used_addresses())
        self._recorded += [
            f"{call} took {address} off {interface.id} while in use"
            for name in names
            for address in map(str, ip_network(name))
            if address in used
        ]

    def violations(self) -> list[str]:
        """Returns everything that is wrong now, after what was wrong at the time of a release."""
        return [*self._recorded, *self._address_faults(), *self._elastic_ip_faults(), *self._instance_faults()]

    def leftovers(self, tags: Mapping[str, str]) -> list[Interface]:
        """Returns the available interfaces that carry all `tags`."""
        interfaces = self._world.interfaces.truth.by_id.values()
        return [each for each in interfaces if each.attachment is None and tags.items() <= each.tags.items()]

    # -- addresses ---------------------------------------------------------------------------------
    def _address_faults(self) -> Iterator[str]:
        holders: dict[tuple[str, str], list[str]] = defaultdict(list)  # by VPC and address (or IPv6 prefix)
        for interface in self._world.interfaces.truth.by_id.values():
            subnet = self._world.subnets.truth.by_id[interface.subnet_id]
            yield from _ipv4_faults(interface, subnet)
            yield from _ipv6_faults(interface, subnet)
            for address in _covered(interface):
                holders[interface.vpc_id, address].append(interface.id)
        for (vpc_id, address), held_by in holders.items():
            if len(held_by) > 1:
                yield f"{address} is on {', '.join(held_by)} at once"
            if ":" in address and "/" not in address:
                around = str(IPv6Network((address, IPV6_PREFIX_LENGTH), strict=False))
                if (vpc_id, around) in holders:
                    yield f"{address} of {held_by[0]} is inside {around} of {', '.join(holders[vpc_id, around])}"

    def _elastic_ip_faults(self) -> Iterator[str]:
        for elastic_ip in self._world.elastic_ips.truth.by_id.values():
            place = elastic_ip.association
            interface = self._world.interfaces.truth.by_id.get(place.interface_id) if place else None
            if place and (interface is None or place.private_address not in interface.private_addresses):
                yield f"{elastic_ip.public_ip} is associated with {place.private_address}, which is not assigned"

    # -- instances ---------------------------------------------------------------------------------
    def _instance_faults(self) -> Iterator[str]:
        places: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        for interface in self._world.interfaces.truth.by_id.values():
            attachment = interface.attachment
            if attachment is None:
                continue
            places[attachment.instance_id][attachment.network_card, attachment.device_index] += 1
            instance = self._world.instances.truth.by_id.get(attachment.instance_id)
            if instance is None or instance.state == "terminated":
                yield f"{interface.id} is attached to {attachment.instance_id}, which is gone"
                continue
            limit = type_of(instance).ipv4_per_interface
            for family, slots in (("IPv4", interface.ipv4_slots), ("IPv6", interface.ipv6_slots)):
                if slots > limit:
                    yield (
                        f"{interface.id} has {slots} {family} addresses and prefixes, "
                        f"and {instance.instance_type} takes {limit}"
                    )
            if (interface.prefixes or interface.ipv6_prefixes) and not type_of(instance).takes_prefixes:
                yield f"{interface.id} has prefixes, and {instance.instance_type} takes none"
        for instance_id, counts in places.items():
            yield from self._place_faults(instance_id, counts)

    def _place_faults(self, instance_id: str, counts: Counter[tuple[int, int]]) -> Iterator[str]:
        for (card, index), count in counts.items():
            if count > 1:
                yield f"{instance_id} has {count} interfaces at index {index} of card {card}"
        instance = self._world.instances.truth.by_id.get(instance_id)
        per_card = Counter(card for card, _ in counts.elements())
        for card, count in per_card.items():
            limit = card_limit(instance, card) if instance else count
            if count > limit:
                yield f"{instance_id} has {count} interfaces on card {card}, and it takes {limit}"


def _covered(interface: Interface) -> Iterator[str]:
    """Each address that an interface holds, also inside its IPv4 prefixes; an IPv6 prefix as a whole."""
    yield from interface.private_addresses
    for prefix in interface.prefixes:
        yield from map(str, IPv4Network(prefix))
    yield from interface.ipv6_addresses
    yield from interface.ipv6_prefixes


def _ipv4_faults(interface: Interface, subnet: Subnet) -> Iterator[str]:
    held = (*interface.private_addresses, *interface.prefixes)
    if held and not subnet.cidr:
        yield f"{interface.id} has {held[0]}, and {subnet.id} has no IPv4 block"
        return
    if not held:
        return
    network = IPv4Network(subnet.cidr)
    first = int(network.network_address) + RESERVED_COUNT - 1
    last = int(network.broadcast_address) - 1
    for name in held:
        start = int(IPv4Address(name.partition("/")[0]))
        if not (first <= start and start + (PREFIX_SIZE if "/" in name else 1) - 1 <= last):
            yield f"{interface.id} has {name}, which {network} cannot give"


def _ipv6_faults(interface: Interface, subnet: Subnet) -> Iterator[str]:
    held = (*interface.ipv6_addresses, *interface.ipv6_prefixes)
    if held and not subnet.ipv6_cidr:
        yield f"{interface.id} has {held[0]}, and {subnet.id} has no IPv6 block"
        return
    for name in held:
        if not IPv6Network(name).subnet_of(IPv6Network(subnet.ipv6_cidr)):
            yield f"{interface.id} has {name}, which {subnet.ipv6_cidr} cannot give"
