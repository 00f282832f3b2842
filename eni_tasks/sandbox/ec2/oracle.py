"""The oracle: what must never be so, looked up in the records themselves and told in words.

It trusts neither the address pools nor the checks of the calls: it counts again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.addresses import RESERVED_COUNT
from eni_tasks.sandbox.ec2.instance_types import INSTANCE_TYPES
from eni_tasks.sandbox.ec2.interfaces import max_interfaces

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from eni_tasks.sandbox.ec2.records import Interface
    from eni_tasks.sandbox.ec2.world import World


class Oracle:
    """Watches a world.

    Whoever plays the pods puts the addresses in use into `used`, or sets `used_addresses` to be
    asked at the moment of a release.

    Args:
        world: to watch.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._recorded: list[str] = []
        self.used: set[str] = set()
        self.used_addresses: Callable[[], Collection[str]] = lambda: ()
        world.on_release = self._released

    def _released(self, call: str, interface: Interface, addresses: Sequence[str]) -> None:
        used = self.used.union(self.used_addresses())
        self._recorded += [f"{call} took {each} off {interface.id} while in use" for each in addresses if each in used]

    def violations(self) -> list[str]:
        """Returns everything that is wrong now, after what was wrong at the time of a release."""
        return [*self._recorded, *self._address_faults(), *self._instance_faults()]

    def leftovers(self, tags: Mapping[str, str]) -> list[Interface]:
        """Returns the available interfaces that carry all `tags`."""
        interfaces = self._world.interfaces.truth.by_id.values()
        return [each for each in interfaces if each.attachment is None and tags.items() <= each.tags.items()]

    def _address_faults(self) -> Iterator[str]:
        holders: dict[tuple[str, str], list[str]] = defaultdict(list)  # by VPC and address
        for interface in self._world.interfaces.truth.by_id.values():
            network = IPv4Network(self._world.subnets[interface.subnet_id].cidr)
            first = int(network.network_address) + RESERVED_COUNT - 1
            last = int(network.broadcast_address) - 1
            for address in (interface.primary_address, *interface.addresses):
                holders[interface.vpc_id, address].append(interface.id)
                if not first <= int(IPv4Address(address)) <= last:
                    yield f"{interface.id} has {address}, which {network} cannot give"
        for (_, address), held_by in holders.items():
            if len(held_by) > 1:
                yield f"{address} is on {', '.join(held_by)} at once"

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
            limit = INSTANCE_TYPES[instance.instance_type].ipv4_per_interface
            count = 1 + len(interface.addresses)
            if count > limit:
                yield f"{interface.id} has {count} addresses, and {instance.instance_type} takes {limit}"
        for instance_id, counts in places.items():
            yield from self._place_faults(instance_id, counts)

    def _place_faults(self, instance_id: str, counts: Counter[tuple[int, int]]) -> Iterator[str]:
        for (card, index), count in counts.items():
            if count > 1:
                yield f"{instance_id} has {count} interfaces at index {index} of card {card}"
        instance = self._world.instances.truth.by_id.get(instance_id)
        per_card = Counter(card for card, _ in counts.elements())
        for card, count in per_card.items():
            limit = max_interfaces(instance, card) if instance else count
            if count > limit:
                yield f"{instance_id} has {count} interfaces on card {card}, and it takes {limit}"
