"""What a node needs beside its pool, an IPv6 prefix and a static address, and the next step towards it.

The steps are independent: one that is impossible leaves a sentence for people, and holds up neither the other nor the
pool. Only a new interface concerns both IPv6 and the pool; the planner joins them in one creation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.domain import ipv6, static_address
from eni_tasks.model.plan import AssignIpv6Prefix, AssociateAddress, Reason

if TYPE_CHECKING:
    from eni_tasks.model.network import Limits
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState


class Beside(NamedTuple):
    """The next step beside the pool, if there is one, and the sentence that explains it.

    `troubles` say what can't be done now, and why. With `interface_for_ipv6` no attached interface can take the IPv6
    prefix: a new one is to be created with it.
    """

    action: AssignIpv6Prefix | AssociateAddress | None = None
    reason: Reason = Reason.AT_SIZE
    sentence: str = ""
    troubles: tuple[str, ...] = ()
    interface_for_ipv6: bool = False

    @property
    def active(self) -> bool:
        """Whether there is anything to do in EC2."""
        return self.action is not None or self.interface_for_ipv6


def asks_anew(node: Node, old: Node) -> bool:
    """Say whether a node asks for something beside its pool that it did not ask for before.

    Args:
        node: the node as its object reads now.
        old: as it read before.
    """
    static = bool(node.static_ip_tags) and node.static_ip_tags != old.static_ip_tags
    return static or (ipv6.wanted(node) and not ipv6.wanted(old))


def step(state: NodeState, policy: Policy, limits: Limits, now: float) -> Beside:
    """Decide the next step: IPv6 first, since agents don't start without it.

    Args:
        state: the node and its interfaces.
        policy: for the settings.
        limits: what the instance type can carry.
        now: Redis' time in seconds.
    """
    found = static_address.step(state, policy, now)
    troubles = (found,) if isinstance(found, str) and found else ()
    for_ipv6 = False
    if ipv6.missing(state):
        if why := ipv6.obstacle(state, policy, limits, now):
            troubles = (*troubles, why)
        elif (interface := ipv6.choose(state, policy, limits)) is not None:
            assign = AssignIpv6Prefix(interface_id=interface.id)
            sentence = (
                f"The agent of {state.node.name} asks for IPv6 addresses: assign a prefix to {interface.id} "
                f"(device {interface.device_index}, {interface.subnet_id})."
            )
            return Beside(assign, Reason.IPV6, sentence, troubles)
        else:
            for_ipv6 = True
    if isinstance(found, str):
        return Beside(troubles=troubles, interface_for_ipv6=for_ipv6)
    return Beside(found[0], Reason.STATIC_ADDRESS, found[1], troubles, for_ipv6)
