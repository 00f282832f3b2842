"""The vectors' world in our values: one vector becomes a `NodeState`, for any test that replays it.

Vectors write down what Cilium's operator saw. Two things need translating. An interface's `addresses`
there contain the addresses expanded from its prefixes, and in the vectors of 1.6 also its primary,
which that version gave to pods. The latter is the same world as one whose node asks for
`use-primary-address` today, and it is read as such.
"""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eni_tasks.domain.cilium_node import decode_node, parse_node
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import (
    Infrastructure,
    InstanceId,
    Interface,
    Limits,
    RouteTable,
    SecurityGroup,
    Subnet,
    Vpc,
    VpcId,
)
from eni_tasks.model.node import Memory, Node, Policy
from eni_tasks.model.state import Facts, NodeState

VECTORS = Path(__file__).parent / "vectors"
POLICY = Policy(cluster="test", interface_tags={"io.cilium/cilium-managed": "true", "io.cilium/cluster-name": "test"})
INSTANCE = InstanceId("i-1")
VPC = VpcId("vpc-1")
NOW = 1000.0  # when all facts of these worlds were read

Vector = dict[str, Any]


def load(file: str) -> list[Vector]:
    """Read the vectors of one file."""
    vectors: list[Vector] = json.loads((VECTORS / f"{file}.json").read_text())["vectors"]
    return vectors


def cases(vectors: list[Vector]) -> list[Any]:
    """Make pytest parameters of vectors, each under its own id."""
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


def required(vector: Vector) -> dict[str, Any]:
    """Give what the vector asks of us: the corrected outcome where the literal one is a fault."""
    return dict(vector.get("expected_fixed") or vector["expected"])


def node_state(vector: Vector, memory: Memory | None = None) -> NodeState:
    """Build the node state of an action vector."""
    given = vector["input"]
    obj = cilium_object(given["cilium_node"], primaries_pooled=vector["semantics"] == "1.6")
    node = parse_node(obj)
    ec2 = given["ec2"]
    return known_state(
        node,
        interfaces(ec2["enis"], instance_id=node.instance_id, vpc_id=node.vpc_id),
        limits=limits(node.instance_type, ec2["limits"].get(node.instance_type)),
        infrastructure=infrastructure(ec2),
        memory=memory or Memory(),
        pending_pods=given.get("pending_pods", 0) - given.get("pending_pods_host_network", 0),
    )


def policy_of(vector: Vector) -> Policy:
    """Give the policy of a vector: the usual one, and its setting of prefix delegation."""
    on = vector["input"].get("operator", {}).get("prefix_delegation", False)
    return msgspec.structs.replace(POLICY, prefix_delegation=on)


def known_state(node: Node, interfaces: tuple[Interface, ...] | None, **more: Any) -> NodeState:
    """Build the state of a node whose interfaces are known, or unknown with None."""
    facts = None
    if interfaces is not None:
        facts = Facts(instance_id=node.instance_id, interfaces=interfaces, described_at=NOW)
    known = msgspec.structs.replace(more.pop("infrastructure", Infrastructure()), described_at=NOW)
    return NodeState(node=node, facts=facts, infrastructure=known, **more)


def with_interfaces(state: NodeState, interfaces: tuple[Interface, ...] | None) -> NodeState:
    """The same state with other interfaces, or with unknown ones."""
    facts = known_state(state.node, interfaces).facts
    return msgspec.structs.replace(state, facts=facts)


def cilium_object(partial: dict[str, Any], *, primaries_pooled: bool = False) -> CiliumNode:
    """Complete a vector's partial object with what every real object has."""
    metadata = {"name": "node-1", "uid": "uid-1", "resourceVersion": "1"} | partial.get("metadata", {})
    spec = dict(partial.get("spec", {}))
    if primaries_pooled:
        spec["eni"] = spec.get("eni", {}) | {"use-primary-address": True}
    return decoded({"metadata": metadata, "spec": spec, "status": partial.get("status", {})})


def decoded(obj: dict[str, Any]) -> CiliumNode:
    """Decode an object as it comes from the API server."""
    return decode_node(json.dumps(obj).encode())


def interfaces(
    enis: list[dict[str, Any]], *, instance_id: InstanceId = INSTANCE, vpc_id: VpcId = VPC
) -> tuple[Interface, ...]:
    """Build a vector's interfaces, all attached."""
    return tuple(
        Interface(
            id=eni["id"],
            subnet_id=eni["subnet"],
            vpc_id=vpc_id,
            primary_address=eni["ip"],
            instance_id=instance_id,
            device_index=eni["number"],
            attachment_id=f"{eni['id']}-attach",
            attachment_status="attached",
            addresses=tuple(address for address in eni["addresses"] if address not in _not_secondary(eni)),
            prefixes=tuple(eni.get("prefixes", ())),
            ipv6_prefixes=tuple(eni.get("ipv6_prefixes", ())),
            security_groups=tuple(eni["security_groups"]),
            tags=eni.get("tags", {}),
        )
        for eni in enis
    )


def _not_secondary(eni: dict[str, Any]) -> set[str]:
    expanded = {str(address) for prefix in eni.get("prefixes", ()) for address in IPv4Network(prefix)}
    return {eni["ip"], *expanded}


def infrastructure(ec2: dict[str, Any]) -> Infrastructure:
    """Build the subnets, VPCs, groups and route tables of a vector's `ec2`."""
    subnets = ec2.get("subnets", [])
    return Infrastructure(
        vpcs={subnet["vpc"]: Vpc(id=subnet["vpc"], primary_cidr="10.0.0.0/8") for subnet in subnets},
        subnets={
            subnet["id"]: Subnet(
                id=subnet["id"],
                vpc_id=subnet["vpc"],
                availability_zone=subnet["az"],
                cidr=f"10.{position}.0.0/16",
                free=subnet["available"],
                tags=subnet.get("tags", {}),
            )
            for position, subnet in enumerate(subnets)
        },
        security_groups={
            group["id"]: SecurityGroup(id=group["id"], vpc_id=group["vpc"], tags=group.get("tags", {}))
            for group in ec2.get("security_groups", [])
        },
        route_tables=tuple(
            RouteTable(id=table["id"], vpc_id=table["vpc"], subnet_ids=tuple(table["subnets"]))
            for table in ec2.get("route_tables", [])
        ),
    )


def limits(instance_type: str, given: dict[str, Any] | None) -> Limits | None:
    """Build an instance type's limits, None for an unknown type."""
    if given is None:
        return None
    return Limits(
        instance_type=instance_type,
        max_interfaces=given["adapters"],
        ipv4_per_interface=given["ipv4"],
        ipv6_per_interface=given["ipv6"],
        hypervisor=given["hypervisor"],
        bare_metal=given["bare_metal"],
    )
