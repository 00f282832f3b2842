"""The addresses of one subnet: single ones and prefixes, taken in order, reused as late as possible.

EC2 picks addresses at random. In order is as good for a client and makes runs repeatable; late reuse makes
a client's error visible, because an address that it lost belongs to no other interface for a while.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.errors import address_in_use, invalid_value, no_free_block, subnet_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RESERVED_COUNT = 5  # network, router, DNS, "future use", broadcast
PREFIX_SIZE = 16  # addresses of an IPv4 prefix, a /28
IPV4_PREFIX_LENGTH = 28
IPV6_PREFIX_LENGTH = 80


class Ipv4Pool:
    """The IPv4 addresses of a subnet.

    Args:
        cidr: the subnet's block.
        changed: called after each change of `free`.
    """

    def __init__(self, cidr: str, changed: Callable[[], object] = lambda: None) -> None:
        self._network = IPv4Network(cidr)
        self._first = int(self._network.network_address) + RESERVED_COUNT - 1
        self._size = self._network.num_addresses - RESERVED_COUNT
        self._next = 0
        self._next_block = 0
        self._taken: set[int] = set()
        self._taken_in_block: Counter[int] = Counter()  # by number of the /28
        self._changed = changed

    @property
    def free(self) -> int:
        """EC2's AvailableIpAddressCount."""
        return self._size - len(self._taken)

    def take(self, count: int) -> tuple[str, ...]:
        """Take single addresses, all or none.

        Args:
            count: how many.

        Returns:
            The addresses, in order.

        Raises:
            Ec2Error: the subnet has fewer.
        """
        if count > self.free:
            raise subnet_full()
        found: list[int] = []
        while len(found) < count:
            address = self._first + self._next
            self._next = (self._next + 1) % self._size
            if address not in self._taken:
                self._add([address])
                found.append(address)
        self._changed()
        return tuple(str(IPv4Address(address)) for address in found)

    def take_prefixes(self, count: int) -> tuple[str, ...]:
        """Take prefixes, all or none: /28 blocks of which no address is taken or reserved.

        Args:
            count: how many.

        Raises:
            Ec2Error: the subnet has fewer of them, however many single addresses are free.
        """
        block_count = self._network.num_addresses // PREFIX_SIZE
        found: list[int] = []
        for step in range(block_count):
            if len(found) == count:
                break
            block = (self._next_block + step) % block_count
            if not self._taken_in_block[block] and self._assignable(block):
                found.append(block)
        if len(found) < count:
            raise no_free_block()
        if found:
            self._next_block = (found[-1] + 1) % block_count
            for block in found:
                self._add(self._block_addresses(block))
            self._changed()
        return tuple(f"{IPv4Address(self._block_start(block))}/{IPV4_PREFIX_LENGTH}" for block in found)

    def claim(self, names: Sequence[str]) -> None:
        """Take addresses or prefixes by name, all or none.

        Args:
            names: addresses ("10.0.0.9") and /28 prefixes ("10.0.0.16/28").

        Raises:
            Ec2Error: one of them is not in this subnet, is reserved or is taken.
        """
        wanted: list[int] = []
        for name in names:
            addresses = self._read(name)
            if not self._taken.isdisjoint(addresses) or not set(wanted).isdisjoint(addresses):
                raise address_in_use(name)
            wanted += addresses
        self._add(wanted)
        if wanted:
            self._changed()

    def give_back(self, names: Sequence[str]) -> None:
        """Return addresses and prefixes that are no longer assigned."""
        for name in names:
            addresses = self._read(name)
            self._taken.difference_update(addresses)
            self._taken_in_block.subtract(map(self._block, addresses))
        self._changed()

    def _add(self, addresses: Iterable[int]) -> None:
        for address in addresses:
            self._taken.add(address)
            self._taken_in_block[self._block(address)] += 1

    def _block(self, address: int) -> int:
        return (address - int(self._network.network_address)) // PREFIX_SIZE

    def _block_start(self, block: int) -> int:
        return int(self._network.network_address) + block * PREFIX_SIZE

    def _block_addresses(self, block: int) -> range:
        start = self._block_start(block)
        return range(start, start + PREFIX_SIZE)

    def _assignable(self, block: int) -> bool:
        addresses = self._block_addresses(block)
        return self._first <= addresses.start and addresses.stop <= self._first + self._size

    def _read(self, name: str) -> range:
        try:
            network = IPv4Network(name)
        except ValueError:
            raise invalid_value(f"Value ({name}) is not an address or a prefix.") from None
        if network.prefixlen not in (32, IPV4_PREFIX_LENGTH):
            raise invalid_value(f"The prefix {name} must have the length {IPV4_PREFIX_LENGTH}.")
        start = int(network.network_address)
        if not (self._first <= start and start + network.num_addresses <= self._first + self._size):
            raise invalid_value(f"Address {name} does not fall within the subnet's address range")
        return range(start, start + network.num_addresses)


class Ipv6Pool:
    """The IPv6 addresses of a subnet, a /64: single ones from its first /80, prefixes from the others.

    Args:
        cidr: the subnet's block.
    """

    def __init__(self, cidr: str) -> None:
        self._start = int(IPv6Network(cidr).network_address)
        self._addresses = _Numbers(RESERVED_COUNT - 1, 1 << (128 - IPV6_PREFIX_LENGTH))
        self._prefixes = _Numbers(1, 1 << (IPV6_PREFIX_LENGTH - 64))

    def take(self, count: int) -> tuple[str, ...]:
        """Take single addresses, all or none."""
        return tuple(str(IPv6Address(self._start + number)) for number in self._addresses.take(count))

    def take_prefixes(self, count: int) -> tuple[str, ...]:
        """Take /80 prefixes, all or none.

        Raises:
            Ec2Error: the subnet has fewer.
        """
        starts = (self._start + (number << (128 - IPV6_PREFIX_LENGTH)) for number in self._prefixes.take(count))
        return tuple(f"{IPv6Address(start)}/{IPV6_PREFIX_LENGTH}" for start in starts)

    def give_back(self, names: Iterable[str]) -> None:
        """Return addresses and prefixes that are no longer assigned."""
        for name in names:
            network = IPv6Network(name)
            number = int(network.network_address) - self._start
            if network.prefixlen == IPV6_PREFIX_LENGTH:
                self._prefixes.give_back(number >> (128 - IPV6_PREFIX_LENGTH))
            else:
                self._addresses.give_back(number)


class _Numbers:
    def __init__(self, first: int, end: int) -> None:
        self._first, self._end = first, end
        self._next = first
        self._taken: set[int] = set()

    def take(self, count: int) -> list[int]:
        if count > self._end - self._first - len(self._taken):
            raise no_free_block()
        found: list[int] = []
        while len(found) < count:
            if self._next not in self._taken:
                self._taken.add(self._next)
                found.append(self._next)
            self._next = self._next + 1 if self._next + 1 < self._end else self._first
        return found

    def give_back(self, number: int) -> None:
        self._taken.discard(number)
