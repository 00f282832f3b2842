"""A network to start from: one VPC, and in each zone a subnet for nodes and a large one for pods."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from eni_tasks.sandbox.ec2.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

ZONES = "abcdef"


class DefaultWorld(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of what was built; subnets are by zone ("a", "b", …)."""

    world: World
    vpc_id: str
    node_subnets: dict[str, str]
    pod_subnets: dict[str, str]
    node_group: str
    pod_group: str


def build_default_world(
    zone_count: int = 2, region: str = "eu-west-1", clock: Callable[[], float] = time.time
) -> DefaultWorld:
    """Build the network.

    Nodes live in 10.0.0.0/16, a /20 per zone tagged `purpose=nodes`; pods in the secondary block
    100.64.0.0/16, a /18 per zone (three at most) tagged `purpose=pods`. Zones, groups and route
    tables carry names.

    Args:
        zone_count: 1 to 3.
        region: names the zones.
        clock: the time in seconds.

    Returns:
        The world with the ids of its parts.
    """
    world = World(clock, region)
    vpc = world.add_vpc("10.0.0.0/16", ["100.64.0.0/16"], {"Name": "sandbox"})
    zones = ZONES[:zone_count]
    nodes: dict[str, str] = {}
    pods: dict[str, str] = {}
    for number, zone in enumerate(zones):
        tags = {"Name": f"nodes-{zone}", "purpose": "nodes"}
        nodes[zone] = world.add_subnet(vpc.id, zone, f"10.0.{16 * number}.0/20", tags).id
        tags = {"Name": f"pods-{zone}", "purpose": "pods"}
        pods[zone] = world.add_subnet(vpc.id, zone, f"100.64.{64 * number}.0/18", tags).id
    world.add_route_table(vpc.id, main=True, tags={"Name": "main"})
    for zone in zones:
        world.add_route_table(vpc.id, [nodes[zone], pods[zone]], tags={"Name": f"private-{zone}"})
    node_group = world.add_security_group(vpc.id, "nodes", {"Name": "nodes", "purpose": "nodes"})
    pod_group = world.add_security_group(vpc.id, "pods", {"Name": "pods", "purpose": "pods"})
    return DefaultWorld(
        world=world,
        vpc_id=vpc.id,
        node_subnets=nodes,
        pod_subnets=pods,
        node_group=node_group.id,
        pod_group=pod_group.id,
    )
