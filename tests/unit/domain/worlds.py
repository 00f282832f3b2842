"""Small worlds, written down in one line each: a node, its interfaces, its subnets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from vector_world import POLICY, known_state

from eni_tasks.domain.planner import plan
from eni_tasks.model.network import Infrastructure, Interface, Limits, SecurityGroup, Subnet, Vpc
from eni_tasks.model.node import Memory, Node
from eni_tasks.model.state import NodeState

if TYPE_CHECKING:
    from eni_tasks.model.plan import Plan

T3_SMALL = Limits(instance_type="t3.small", max_interfaces=3, ipv4_per_interface=4)
M5_LARGE = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10, hypervisor="nitro")
M5_4XLARGE = Limits(instance_type="m5.4xlarge", max_interfaces=8, ipv4_per_interface=30)
PLACE = {"vpc_id": "vpc-1", "availability_zone": "eu-1a"}


def eni(index: int, held: int, subnet: str = "subnet-a", **more: Any) -> Interface:
    """Build an attached interface with `held` secondary addresses."""
    given: dict[str, Any] = {
        "id": f"eni-{index}",
        "subnet_id": subnet,
        "vpc_id": "vpc-1",
        "primary_address": f"10.{index}.0.4",
        "mac": f"02:00:00:00:00:{index:02x}",
        "instance_id": "i-1",
        "device_index": index,
        "attachment_status": "attached",
        "addresses": tuple(f"10.{index}.1.{number}" for number in range(held)),
        "security_groups": ("sg-node",),
        "owner_id": "111111111111",
    }
    return Interface(**given | more)


def subnet(name: str, free: int, **more: Any) -> Subnet:
    """Build a subnet of the usual VPC and zone."""
    given: dict[str, Any] = {"id": name, "cidr": "10.0.0.0/16", "free": free} | PLACE
    return Subnet(**given | more)


def group(name: str, vpc_id: str = "vpc-1", **tags: str) -> SecurityGroup:
    """Build a security group."""
    return SecurityGroup(id=name, vpc_id=vpc_id, tags=tags)


def world(  # noqa: PLR0913 - one line per world is the point
    *interfaces: Interface,
    limits: Limits | None = M5_LARGE,
    subnets: tuple[Subnet, ...] | None = None,
    groups: tuple[SecurityGroup, ...] = (),
    cooling_down: frozenset[str] = frozenset(),
    no_prefix: frozenset[str] = frozenset(),
    reserved: dict[str, int] | None = None,
    memory: Memory | None = None,
    **node: Any,
) -> NodeState:
    """Build a node's state; `node` are fields of the node, `used` may be a count."""
    given: dict[str, Any] = {"name": "node-1", "uid": "uid-1", "instance_id": "i-1", "first_interface_index": 1} | PLACE
    if isinstance(node.get("used"), int):
        node["used"] = frozenset(f"192.0.2.{number}" for number in range(node["used"]))
    known = subnets if subnets is not None else (subnet("subnet-a", 100),)
    return known_state(
        Node(**given | node),
        interfaces,
        limits=limits,
        infrastructure=Infrastructure(
            vpcs={"vpc-1": Vpc(id="vpc-1", primary_cidr="10.0.0.0/8")},
            subnets={subnet.id: subnet for subnet in known},
            security_groups={group.id: group for group in groups},
        ),
        cooling_down=cooling_down,
        no_prefix=no_prefix,
        reserved=reserved or {},
        memory=memory or Memory(),
    )


def planned(state: NodeState, **policy: Any) -> Plan:
    """Plan with the usual policy, but for what is given."""
    return plan(state, msgspec.structs.replace(POLICY, **policy), now=1000.0)
