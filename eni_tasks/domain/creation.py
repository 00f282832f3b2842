"""What a new interface is made of: subnet, size, device index, security groups, tags; and when one may be tried.

It decides only what to ask for; creating, attaching and recording it step by step is the work of
`services/create_interface`. `subnets` finds the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.domain import capacity, subnets
from eni_tasks.domain.eligibility import first_interface, occupying
from eni_tasks.domain.prefixes import SIZE, delegates
from eni_tasks.model.network import matches
from eni_tasks.model.plan import Blocked, CreateInterface, Reason

if TYPE_CHECKING:
    from eni_tasks.model.network import Interface, Limits
    from eni_tasks.model.node import Memory, Node, Policy
    from eni_tasks.model.state import NodeState

# EC2 refuses an attach when the instance has no free slot. On many types volumes take slots, too, and they come and
# go, so the refusal proves nothing for long: the wait begins with the first figure and doubles up to the second.
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 600.0, 6 * 3600.0


def create(  # noqa: PLR0913 - all that an interface can be given
    state: NodeState,
    policy: Policy,
    limits: Limits,
    want_secondaries: int,
    *,
    prefix_count: int = 0,
    ipv6_prefix: bool = False,
) -> tuple[CreateInterface, str] | Blocked:
    """Decide the interface to create.

    Args:
        state: the node, its interfaces, the subnets.
        policy: for tags, and for the bounds of subnets and security groups.
        limits: what the instance type can carry.
        want_secondaries: addresses to ask for besides the primary.
        prefix_count: /28 prefixes to ask for instead, if above 0; its subnet must have one then.
        ipv6_prefix: whether it is to get an IPv6 prefix, too; its subnet must have IPv6 then.

    Returns:
        The action and the sentence that explains it, or why there is none.
    """
    node = state.node
    interfaces = state.interfaces or ()
    groups = security_groups(state, policy)
    if isinstance(groups, Blocked):
        return groups
    choice = subnets.choose(state, policy, limits, dual_stack=ipv6_prefix, for_prefix=prefix_count > 0)
    if isinstance(choice, Blocked):
        return choice
    # The subnet gives one address to the interface itself.
    slots, room = capacity.secondaries_per_interface(limits), choice.room - 1
    prefixes = min(prefix_count, slots, room // SIZE)
    count = 0 if prefix_count else min(want_secondaries, slots, room)
    index = next_device_index(interfaces, node)
    action = CreateInterface(
        instance_id=node.instance_id,
        subnet_id=choice.subnet.id,
        secondary_count=count,
        prefix_count=prefixes,
        fallback=not prefix_count and delegates(node, limits, policy),
        security_groups=groups,
        device_index=index,
        network_card=limits.network_card,
        description=f"Cilium-CNI ({node.instance_id})",
        tags=dict(policy.interface_tags),
        delete_on_termination=node.delete_on_termination,
        ipv6_prefix=ipv6_prefix,
    )
    given = f"{prefixes} /28 prefixes for {want_secondaries}" if prefix_count else f"{count} of {want_secondaries}"
    prefix = " and an IPv6 prefix" if ipv6_prefix else ""
    sentence = (
        f"No attached interface can take more: create one with {given}{prefix} as device {index} "
        f"in {choice.subnet.id} (rule {choice.rule}, room for {choice.room})."
    )
    return action, sentence


def next_device_index(interfaces: tuple[Interface, ...], node: Node) -> int:
    """Find the first free device index at or above the node's first-interface-index."""
    taken = {interface.device_index for interface in occupying(interfaces, node.network_card)}
    index = node.first_interface_index
    while index in taken:
        index += 1
    return index


def security_groups(state: NodeState, policy: Policy) -> tuple[str, ...] | Blocked:
    """Find the security groups of a new interface.

    Args:
        state: the node, its interfaces, the groups of its VPC.
        policy: for the groups that an object may select.

    Returns:
        Those that the object names, in its order; else all of the VPC that carry its tags, sorted;
        else those of the instance's first interface, sorted. Blocked if the object selects a group
        outside the policy's bounds, and if nothing is left, since EC2 would silently take the VPC's default group.
    """
    node = state.node
    if selected := node.security_groups or _tagged(state):
        return _outside(selected, state, policy) or selected
    first = first_interface(state.interfaces or (), node.network_card)
    if first is not None and first.security_groups:
        # The instance was launched with them: no agent chose them.
        return tuple(sorted(first.security_groups))
    return Blocked(
        Reason.NO_SECURITY_GROUP,
        f"No security groups for an interface of {node.name}: none in spec.eni.security-groups, none by "
        f"security-group-tags, and device 0 of {node.instance_id} shows none. Name them in the object.",
    )


def _tagged(state: NodeState) -> tuple[str, ...]:
    node, groups = state.node, state.infrastructure.security_groups.values()
    if not node.security_group_tags:
        return ()
    return tuple(sorted(g.id for g in groups if g.vpc_id == node.vpc_id and matches(node.security_group_tags, g.tags)))


def _outside(selected: tuple[str, ...], state: NodeState, policy: Policy) -> Blocked | None:
    """Refuse groups that the settings do not allow; one that EC2 has not described has no known tags."""
    ids, tags = policy.security_group_ids_filter, policy.security_group_tags_filter
    known = state.infrastructure.security_groups
    by_id = [name for name in selected if ids and name not in ids]
    by_tags = [name for name in selected if tags and not (name in known and matches(tags, known[name].tags))]
    for setting, refused in (("ENI_TASKS_SECURITY_GROUP_IDS", by_id), ("ENI_TASKS_SECURITY_GROUP_TAGS", by_tags)):
        if refused:
            field = "security-groups" if state.node.security_groups else "security-group-tags"
            return Blocked(
                Reason.SECURITY_GROUP_NOT_ALLOWED,
                f"spec.eni.{field} of {state.node.name} selects {', '.join(refused)}, which {setting} does not allow: "
                "no interface is created. Correct the object, or the setting.",
            )
    return None


def note_refusal(memory: Memory, node: Node, now: float) -> Memory:
    """Enter that EC2 has just refused a further interface.

    Args:
        memory: what is known.
        node: whose instance it is.
        now: Redis' time in seconds.
    """
    again = memory.interface_refused_type == node.instance_type
    return msgspec.structs.replace(
        memory,
        interface_refusals=memory.interface_refusals + 1 if again else 1,
        interface_refused_at=now,
        interface_refused_type=node.instance_type,
    )


def note_acceptance(memory: Memory) -> Memory:
    """Enter that EC2 has accepted an interface."""
    return msgspec.structs.replace(memory, interface_refusals=0, interface_refused_at=0.0, interface_refused_type="")


def next_try_at(memory: Memory, node: Node) -> float:
    """When a further interface may be tried again, in Redis seconds; 0 if none was refused for this type."""
    if not memory.interface_refusals or memory.interface_refused_type != node.instance_type:
        return 0.0
    return memory.interface_refused_at + min(
        _LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (memory.interface_refusals - 1)
    )
