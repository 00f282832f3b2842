"""The addresses of one subnet: handed out in order, given again as late as possible."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from eni_tasks.sandbox.ec2.refusals import subnet_full

RESERVED_COUNT = 5  # network, router, DNS, "future use", broadcast


class AddressPool:
    """Hands out addresses going round and round, so that a freed one rests before it comes again.

    Args:
        cidr: the subnet's block.
    """

    def __init__(self, cidr: str) -> None:
        network = IPv4Network(cidr)
        self._first = int(network.network_address) + RESERVED_COUNT - 1
        self._size = network.num_addresses - RESERVED_COUNT
        self._next = 0
        self._taken: set[str] = set()

    @property
    def free(self) -> int:
        """EC2's AvailableIpAddressCount."""
        return self._size - len(self._taken)

    def take(self, count: int) -> tuple[str, ...]:
        """Take addresses, all or none.

        Args:
            count: how many.

        Returns:
            The addresses, in order.

        Raises:
            Refused: the subnet has fewer.
        """
        if count > self.free:
            raise subnet_full()
        found: list[str] = []
        while len(found) < count:
            address = str(IPv4Address(self._first + self._next))
            self._next = (self._next + 1) % self._size
            if address not in self._taken:
                self._taken.add(address)
                found.append(address)
        return tuple(found)

    def give_back(self, addresses: tuple[str, ...]) -> None:
        """Return addresses that are no longer assigned."""
        self._taken.difference_update(addresses)
