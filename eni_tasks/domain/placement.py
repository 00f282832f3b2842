"""Which attached interface gets how many more addresses.

The first eligible interface in order of device index, then id, that has room itself and whose
subnet has room too. An interface with room in a full or cooling_down subnet is no candidate: asking
there again would be refused again. New interfaces are `creation`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.domain import capacity, subnets
from eni_tasks.domain.eligibility import eligible
from eni_tasks.model.plan import Assign

if TYPE_CHECKING:
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Policy
    from eni_tasks.model.state import NodeState


class Candidate(NamedTuple):
    """An eligible interface, its own room, and its subnet's."""

    interface: Interface
    interface_room: int
    subnet_room: int

    def __str__(self) -> str:
        """Describe the interface as the explanations do."""
        return f"{self.interface.id} (device {self.interface.device_index}, {self.interface.subnet_id})"


def candidates(state: NodeState, policy: Policy, limits: Limits) -> tuple[Candidate, ...]:
    """List the eligible interfaces that have room themselves, in the order in which they are filled.

    Args:
        state: the node and its interfaces.
        policy: for the filters that keep subnets from all nodes.
        limits: what the instance type can carry.

    Returns:
        Candidates; their subnet may have no room.
    """
    found = (
        Candidate(interface, capacity.room(interface, limits), subnets.room(interface.subnet_id, state, policy))
        for interface in eligible(state.interfaces or (), state.node)
    )
    return tuple(candidate for candidate in found if candidate.interface_room > 0)


def place(found: tuple[Candidate, ...], want: int) -> tuple[Assign | None, tuple[str, ...]]:
    """Choose the interface that takes the next addresses.

    Args:
        found: from `candidates`.
        want: addresses to ask for; at least 1.

    Returns:
        The action, None if no candidate's subnet has room; and the sentences that explain it.
    """
    sentences: list[str] = []
    for candidate in found:
        if candidate.subnet_room > 0:
            count = min(want, candidate.interface_room, candidate.subnet_room)
            sentences.append(
                f"{candidate} has room for {candidate.interface_room} and its subnet for {candidate.subnet_room}: "
                f"assign {count} of {want}."
            )
            interface = candidate.interface
            return Assign(interface_id=interface.id, subnet_id=interface.subnet_id, count=count), tuple(sentences)
        sentences.append(f"{candidate} has room for {candidate.interface_room}, but its subnet has none.")
    return None, tuple(sentences)
