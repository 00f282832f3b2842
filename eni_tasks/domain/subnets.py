"""Which subnet a new interface goes into, and how much room subnets have.

The rules in their order: subnets the node names by id, else by tags; without such selectors its own
subnet, then those that share a route table with it, then any of its VPC and zone. Explicit selectors
bind: what they match decides, and if they match nothing that is an error, never a free choice.
Within a rule the emptiest subnet wins, equal ones by id. How many addresses are asked for is
`creation`'s and `placement`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.domain.prefixes import SIZE
from eni_tasks.model.network import matches
from eni_tasks.model.plan import Blocked, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Limits, RouteTable, Subnet, SubnetId
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState

# A new interface takes one address for itself; with a single free one no pod would gain anything.
_LEAST_ROOM_FOR_INTERFACE = 2


class Choice(NamedTuple):
    """A subnet for a new interface, the addresses it can give, and the rule that found it."""

    subnet: Subnet
    room: int
    rule: str


def room(subnet_id: SubnetId, state: NodeState, policy: Policy) -> int:
    """Count the addresses that a subnet can give to this node now.

    Args:
        subnet_id: the subnet.
        state: for the subnet's free count, the ledger and the cooling_down subnets.
        policy: for the filters that keep subnets from all nodes.

    Returns:
        Free minus reserved; 0 if the subnet is unknown, filtered out, or said "full" a moment ago.
    """
    subnet = state.infrastructure.subnets.get(subnet_id)
    if subnet is None or subnet_id in state.cooling_down or not _permitted(subnet, policy):
        return 0
    return max(0, subnet.free - state.reserved.get(subnet_id, 0))


def prefix_room(subnet_id: SubnetId, state: NodeState, policy: Policy) -> int:
    """Count the /28 prefixes that a subnet may give to this node now; arguments as of `room`.

    Returns:
        The most that its free addresses allow; 0 if it said a while ago that it has no prefix.
    """
    return 0 if subnet_id in state.no_prefix else room(subnet_id, state, policy) // SIZE


def has_ipv6(subnet_id: SubnetId, state: NodeState, policy: Policy) -> bool:
    """Tell whether a subnet has an IPv6 block, and may be used; arguments as of `room`."""
    subnet = state.infrastructure.subnets.get(subnet_id)
    return subnet is not None and bool(subnet.ipv6_cidr) and _permitted(subnet, policy)


def choose(
    state: NodeState, policy: Policy, limits: Limits, *, dual_stack: bool = False, for_prefix: bool = False
) -> Choice | Blocked:
    """Choose the subnet for a new interface.

    Args:
        state: the node, the subnets, the ledger.
        policy: for the filters that keep subnets from all nodes.
        limits: for the room the node's own subnet must have to be preferred.
        dual_stack: whether the subnet must have an IPv6 block.
        for_prefix: whether it must be able to give a /28 prefix, as far as that is known.

    Returns:
        The choice, or why there is none.
    """
    node = state.node
    subnets = state.infrastructure.subnets.values()
    local = [s for s in subnets if s.vpc_id == node.vpc_id and s.availability_zone == node.availability_zone]
    local = [s for s in local if _permitted(s, policy) and (s.ipv6_cidr or not dual_stack)]
    if node.subnet_ids or node.subnet_tags:
        selected = _selected(local, node)
        if isinstance(selected, Blocked):
            return selected
        rules = [selected]
    else:
        rules = _default_rules(local, state, policy, limits)
    if for_prefix:
        rules = [(rule, [s for s in candidates if prefix_room(s.id, state, policy)]) for rule, candidates in rules]
    least = 1 + SIZE if for_prefix else _LEAST_ROOM_FOR_INTERFACE
    for rule, candidates in rules:
        with_room = [(room(subnet.id, state, policy), subnet) for subnet in candidates]
        with_room = [(free, subnet) for free, subnet in with_room if free >= least]
        if with_room:
            free, subnet = min(with_room, key=lambda pair: (-pair[0], pair[1].id))
            return Choice(subnet, free, rule)
    return _no_room(node, rules)


def share_route_table(one: SubnetId, other: SubnetId, route_tables: Iterable[RouteTable], node: Node) -> bool:
    """Tell whether two subnets are associated with the same route table of the node's VPC."""
    return any(
        table.vpc_id == node.vpc_id and one in table.subnet_ids and other in table.subnet_ids for table in route_tables
    )


def _permitted(subnet: Subnet, policy: Policy) -> bool:
    by_id = not policy.subnet_ids_filter or subnet.id in policy.subnet_ids_filter
    return by_id and matches(policy.subnet_tags_filter, subnet.tags)


def _selected(local: list[Subnet], node: Node) -> tuple[str, list[Subnet]] | Blocked:
    # Ids that are wrong for the VPC or the zone are not among `local`; such a list counts as
    # matching nothing, so that the tags beside it are still tried.
    by_id = [subnet for subnet in local if subnet.id in node.subnet_ids]
    if by_id:
        return "subnet-ids", by_id
    by_tags = [subnet for subnet in local if node.subnet_tags and matches(node.subnet_tags, subnet.tags)]
    if by_tags:
        return "subnet-tags", by_tags
    return Blocked(
        Reason.NO_SELECTED_SUBNET,
        f"The subnet selectors of {node.name} match no subnet of VPC {node.vpc_id or '(unset)'} in zone "
        f"{node.availability_zone or '(unset)'} (subnet-ids: {', '.join(node.subnet_ids) or 'none'}; subnet-tags: "
        f"{_tags(node)}): correct spec.eni.subnet-ids or subnet-tags, or tag a subnet.",
    )


def _default_rules(
    local: list[Subnet], state: NodeState, policy: Policy, limits: Limits
) -> list[tuple[str, list[Subnet]]]:
    node = state.node
    own = [
        subnet
        for subnet in local
        if subnet.id == node.node_subnet_id and room(subnet.id, state, policy) >= limits.ipv4_per_interface
    ]
    tables = state.infrastructure.route_tables
    siblings = [
        subnet
        for subnet in local
        if subnet.id != node.node_subnet_id and share_route_table(node.node_subnet_id, subnet.id, tables, node)
    ]
    return [("node-subnet", own), ("route-table", siblings), ("vpc-az", local)]


def _no_room(node: Node, rules: list[tuple[str, list[Subnet]]]) -> Blocked:
    looked_at = sorted({subnet.id for _, candidates in rules for subnet in candidates})
    where = f"VPC {node.vpc_id or '(unset)'}, zone {node.availability_zone or '(unset)'}"
    if not looked_at:
        sentence = (
            f"{node.name} has no subnet to use in {where}: check its vpc-id and availability-zone, and the filters."
        )
    else:
        names = ", ".join(looked_at)
        sentence = (
            f"No subnet with room for an interface of {node.name} in {where} ({names}): free addresses or add one."
        )
    return Blocked(Reason.NO_SUBNET, sentence)


def _tags(node: Node) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(node.subnet_tags.items())) or "none"
