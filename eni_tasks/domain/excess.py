"""Which excess addresses could go: whole prefixes and single addresses of one interface at a time.

What goes must be free in every respect that is known here; whether the agent agrees is `release`'s business. One
interface at a time, so that one call gives back all that is in excess on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.eligibility import eligible
from eni_tasks.domain.eni_entries import eni_entries, usable_pool
from eni_tasks.domain.prefixes import SIZE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from eni_tasks.model.network import Interface
    from eni_tasks.model.state import NodeState


class Candidates(NamedTuple):
    """What one interface could give back."""

    interface: Interface
    addresses: tuple[str, ...]
    prefixes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Prefixes, then addresses."""
        return self.prefixes + self.addresses

    @property
    def address_count(self) -> int:
        """How many addresses that is."""
        return len(self.addresses) + SIZE * len(self.prefixes)


def candidates(state: NodeState, excess: int, begun: Collection[str]) -> Candidates | None:
    """Choose what could be given back of a node's excess.

    Args:
        state: the node and its interfaces, which are known.
        excess: the most addresses that may go.
        begun: names whose release is under way; they come first, so that a change elsewhere does not start it again.

    Returns:
        The interface that can give back most (among equals one whose release is under way, then the first by device
        index and id): whole unused prefixes while sixteen addresses are in excess, then free secondary addresses, in
        EC2's order. Never a primary address. None if no interface has any.
    """
    entries = eni_entries(state.obj, state)
    usable = usable_pool(state, entries)
    found = [_of(each, state, usable, excess, begun) for each in eligible(state.interfaces or (), state.node)]
    most = max((each.address_count for each in found), default=0)
    if most == 0:
        return None
    best = [each for each in found if each.address_count == most]
    return next((each for each in best if not set(each.names).isdisjoint(begun)), best[0])


def _of(
    interface: Interface, state: NodeState, usable: Mapping[str, str], excess: int, begun: Collection[str]
) -> Candidates:
    used = state.node.used

    def free(names: Iterable[str]) -> list[str]:
        unused = [
            name
            for name in names
            if all(usable.get(address) == interface.id and address not in used for address in expanded(name))
        ]
        return sorted(unused, key=lambda name: name not in begun)

    prefixes = tuple(free(interface.prefixes)[: excess // SIZE])
    left = excess - SIZE * len(prefixes)
    return Candidates(interface, tuple(free(interface.addresses)[:left]), prefixes)
