"""Prefix delegation: which interfaces get /28 prefixes instead of single addresses, and how many.

A prefix takes one slot of an interface, like a single address, and holds sixteen addresses. It must be an aligned block
of free addresses, so a subnet with many free addresses may have no prefix to give. Then other subnets are asked for
one, and only if none of them has any does an interface get single addresses.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface, InterfaceId, Limits
    from eni_tasks.model.node import Memory, Node, Policy
    from eni_tasks.model.state import NodeState

SIZE = 16  # addresses of a prefix; pods may get the first and the last, too


class Delegation(NamedTuple):
    """Whether a node gets prefixes; `fell_back` are interfaces that have single addresses only for lack of a prefix."""

    on: bool = False
    fell_back: frozenset[InterfaceId] = frozenset()

    def takes_prefixes(self, interface: Interface) -> bool:
        """Tell whether an interface is to get prefixes.

        One that has single addresses and no prefix was set up without delegation: it keeps to single ones.
        """
        return self.on and (bool(interface.prefixes) or not interface.addresses or interface.id in self.fell_back)


OFF = Delegation()


def delegation(state: NodeState, policy: Policy) -> Delegation:
    """Read what holds for a node.

    Args:
        state: the node, its limits, and what is remembered of it.
        policy: for the setting.
    """
    if state.limits is None or not delegates(state.node, state.limits, policy):
        return OFF
    return Delegation(on=True, fell_back=state.memory.fell_back)


def delegates(node: Node, limits: Limits, policy: Policy) -> bool:
    """Tell whether a node gets prefixes: setting, object and instance type agree."""
    return policy.prefix_delegation and limits.takes_prefixes and not node.disable_prefix_delegation


def count(want: int, fits: int) -> int:
    """Count the prefixes to ask for: enough for `want` addresses, but no more than hold `fits` addresses.

    Args:
        want: addresses that are wanted.
        fits: addresses that the node may still get.
    """
    return max(0, min(-(-want // SIZE), fits // SIZE))


def is_prefix(text: str) -> bool:
    """Tell whether a text names a block of the size of a prefix."""
    try:
        return IPv4Network(text).num_addresses == SIZE
    except ValueError:
        return False


def note_fallback(memory: Memory, interface_id: InterfaceId, interfaces: Iterable[Interface]) -> Memory:
    """Enter that an interface got single addresses for lack of a prefix.

    Args:
        memory: what is known.
        interface_id: the interface.
        interfaces: all that the instance has: others are forgotten.
    """
    fell_back = {interface_id, *memory.fell_back} & {interface.id for interface in interfaces}
    return msgspec.structs.replace(memory, fell_back=frozenset(fell_back))
