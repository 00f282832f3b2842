"""Which attached interface gets how many more addresses.

The first eligible interface in order of device index, then id, that has room itself and whose
subnet has room too. In a full or cooling_down subnet nothing is asked for: it would be refused again. With
prefix delegation an interface gets prefixes, as `prefixes` says. New interfaces are `creation`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.domain import capacity, subnets
from eni_tasks.domain.eligibility import eligible
from eni_tasks.domain.prefixes import delegation
from eni_tasks.model.plan import Assign

if TYPE_CHECKING:
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Policy
    from eni_tasks.model.state import NodeState


class Candidate(NamedTuple):
    """An eligible interface, its free slots, the addresses that its subnet can give, and the prefixes.

    `prefix_room` is None if the interface takes no prefixes.
    """

    interface: Interface
    interface_room: int
    subnet_room: int
    prefix_room: int | None

    def __str__(self) -> str:
        """Describe the interface as the explanations do."""
        return f"{self.interface.id} (device {self.interface.device_index}, {self.interface.subnet_id})"


def candidates(state: NodeState, policy: Policy, limits: Limits) -> tuple[Candidate, ...]:
    """List the eligible interfaces that have room themselves, in the order in which they are filled.

    Args:
        state: the node and its interfaces.
        policy: for prefix delegation, and for the filters that keep subnets from all nodes.
        limits: what the instance type can carry.

    Returns:
        Candidates; their subnet may have no room.
    """
    delegated = delegation(state, policy)
    found = (
        Candidate(
            interface,
            capacity.room(interface, limits),
            subnets.room(interface.subnet_id, state, policy),
            subnets.prefix_room(interface.subnet_id, state, policy) if delegated.takes_prefixes(interface) else None,
        )
        for interface in eligible(state.interfaces or (), state.node)
    )
    return tuple(candidate for candidate in found if candidate.interface_room > 0)


def place(found: tuple[Candidate, ...], want: int, prefix_count: int = 0) -> tuple[Assign | None, tuple[str, ...]]:
    """Choose the interface that takes the next addresses.

    Args:
        found: from `candidates`.
        want: addresses to ask for; at least 1.
        prefix_count: /28 prefixes to ask for, where the interface takes prefixes; 0: they get single addresses, too.

    Returns:
        The action, None if no candidate's subnet has room; and the sentences that explain it.
    """
    sentences: list[str] = []
    for candidate in found:
        interface = candidate.interface
        if prefix_count and candidate.prefix_room is not None:
            count = min(prefix_count, candidate.interface_room, candidate.prefix_room)
            if count > 0:
                sentences.append(
                    f"{candidate} has {candidate.interface_room} free slots: assign {count} /28 prefixes for {want} "
                    "addresses."
                )
                prefixes = Assign(interface_id=interface.id, subnet_id=interface.subnet_id, prefix_count=count)
                return prefixes, tuple(sentences)
            sentences.append(
                f"{candidate} has {candidate.interface_room} free slots, but its subnet has no free /28 prefix."
            )
        elif candidate.subnet_room > 0:
            count = min(want, candidate.interface_room, candidate.subnet_room)
            sentences.append(
                f"{candidate} has room for {candidate.interface_room} and its subnet for {candidate.subnet_room}: "
                f"assign {count} of {want}."
            )
            single = Assign(
                interface_id=interface.id,
                subnet_id=interface.subnet_id,
                count=count,
                fallback=candidate.prefix_room is not None,
            )
            return single, tuple(sentences)
        else:
            sentences.append(f"{candidate} has room for {candidate.interface_room}, but its subnet has none.")
    return None, tuple(sentences)
