"""A fleet of any size in Redis, as a watcher and workers leave it there, within a second or two and without servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from eni_tasks.domain.cilium_node import decode_node, parse_node
from eni_tasks.domain.eni_entries import eni_entry
from eni_tasks.model.network import (
    Infrastructure,
    InstanceId,
    Interface,
    InterfaceId,
    Limits,
    NodeName,
    SecurityGroup,
    Subnet,
    SubnetId,
    Vpc,
    VpcId,
)
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import ReadResult
from eni_tasks.model.work import WorkKind
from eni_tasks.state.runs import NewObjects, RunEnd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eni_tasks.model.cilium_node import CiliumNode
    from eni_tasks.state import State

VPC = VpcId("vpc-0b1c2d3e4f5a60718")
GROUP = "sg-0a1b2c3d4e5f60718"
ZONES = ("a", "b", "c")
SUBNETS = {zone: SubnetId(f"subnet-0{zone}3d5e7f9a1b2c4d6") for zone in ZONES}
FREE = {"a": 48_210, "b": 37_004, "c": 212}
LIMITS = {
    "m5.large": Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10),
    "m5.xlarge": Limits(instance_type="m5.xlarge", max_interfaces=4, ipv4_per_interface=15),
}
PORTION = 500
REFUSED = "UnauthorizedOperation: You are not authorized to perform this operation."


class Case(NamedTuple):
    """A node: how many addresses its interfaces hold, pods use, and its object shows (None: all).

    `trouble` is what its last run met; the node then waits.
    """

    held: int
    used: int
    shown: int | None = None
    trouble: str = ""


# Nodes by number. An m5.large (three of four) carries 27 addresses for pods, an m5.xlarge 56.
TROUBLES: Mapping[int, Case] = {
    10: Case(18, 18, trouble=f"CreateNetworkInterface has to wait: {REFUSED}"),
    13: Case(18, 15, trouble=f"CreateNetworkInterface has to wait: {REFUSED}"),
    22: Case(13, 9),
    8: Case(12, 4, shown=8),
    44: Case(56, 50),
}


class FleetInRedis:
    """A fleet whose nodes are at size, but for those of `cases`.

    Args:
        state: where it is put; a cluster that holds nothing yet.
        count: how many nodes.
        cases: nodes by number.
    """

    def __init__(self, state: State, count: int, cases: Mapping[int, Case] | None = None) -> None:
        self._state = state
        self._cases = cases or {}
        state.coordination.begin_generation()
        # It began long ago: reads are believed.
        state.connection.client.hset(state.connection.keys.generation_times, "began_at", 0)
        self._read_at = state.now()
        self._infrastructure = Infrastructure(
            vpcs={VPC: Vpc(id=VPC, primary_cidr="10.0.0.0/8")},
            subnets={
                SUBNETS[zone]: Subnet(
                    id=SUBNETS[zone],
                    vpc_id=VPC,
                    availability_zone=f"eu-west-1{zone}",
                    cidr=f"10.{64 * number}.0.0/16",
                    free=FREE[zone],
                )
                for number, zone in enumerate(ZONES)
            },
            security_groups={GROUP: SecurityGroup(id=GROUP, vpc_id=VPC)},
            described_at=self._read_at,
        )
        state.network.put_infrastructure(self._infrastructure)
        state.network.put_limits(LIMITS, negative_ttl_seconds=60)
        for first in range(0, count, PORTION):
            self._put(range(first, min(first + PORTION, count)))
        for number, case in self._cases.items():
            if case.trouble and number < count:
                self._fail(name_of(number), case.trouble)

    def _put(self, numbers: range) -> None:
        nodes = [self._node(number) for number in numbers]
        self._state.runs.store(NewObjects(objects=[obj for obj, _ in nodes]))
        results = [
            ReadResult(instance_id=interfaces[0].instance_id, version=0, interfaces=interfaces, served=True)
            for _, interfaces in nodes
        ]
        assert all(self._state.facts.merge(results, started_at=self._read_at))

    def _fail(self, name: NodeName, trouble: str) -> None:
        """Let a run of the node fail: it waits, and remembers why."""
        self._state.queue.enqueue(WorkKind.MAINTAIN, [(name, Urgency.DEFICIT)])
        begun = self._state.runs.begin(WorkKind.MAINTAIN, name)
        assert begun is not None
        claim, state = begun
        assert not isinstance(state, Exception)
        memory = Memory(uid=state.node.uid, instance_id=state.node.instance_id, retries=2, trouble=trouble)
        self._state.runs.end(claim, RunEnd(memory=memory, in_deficit=True, again_after_seconds=48))

    def _node(self, number: int) -> tuple[CiliumNode, tuple[Interface, ...]]:
        used = 3 + number % 9
        case = self._cases.get(number, Case(held=used + 8, used=used))
        kind = "m5.large" if number % 4 else "m5.xlarge"
        zone = ZONES[number % len(ZONES)]
        interfaces = _interfaces(number, case.held, zone, per_interface=LIMITS[kind].ipv4_per_interface - 1)
        home = {address: interface.id for interface in interfaces for address in interface.addresses}
        raw: dict[str, Any] = {
            "metadata": {"name": name_of(number), "uid": f"uid-{number}", "resourceVersion": str(number + 1)},
            "spec": {
                "instance-id": interfaces[0].instance_id,
                "eni": {
                    "instance-type": kind,
                    "vpc-id": VPC,
                    "availability-zone": f"eu-west-1{zone}",
                    "node-subnet-id": SUBNETS[zone],
                    "first-interface-index": 0,
                },
                "ipam": {
                    "pre-allocate": 8,
                    "pool": {address: {"resource": home[address]} for address in list(home)[: case.shown]},
                },
            },
            "status": {"ipam": {"used": {address: {} for address in list(home)[: case.used]}}},
        }
        node = parse_node(decode_node(msgspec.json.encode(raw)))
        raw["status"]["eni"] = {"enis": {each.id: eni_entry(each, node, self._infrastructure) for each in interfaces}}
        if case.trouble:
            raw["status"]["ipam"]["operator-status"] = {"error": case.trouble}
        return decode_node(msgspec.json.encode(raw)), interfaces


def name_of(number: int) -> NodeName:
    """The name of a node."""
    return NodeName(f"ip-10-{number // 250}-{number % 250}-7.eu-west-1.compute.internal")


def _interfaces(number: int, held: int, zone: str, *, per_interface: int) -> tuple[Interface, ...]:
    network = f"10.{64 * ZONES.index(zone) + number // 250}.{number % 250}"
    addresses = [f"{network}.{each}" for each in range(10, 10 + held)]
    return tuple(
        Interface(
            id=InterfaceId(f"eni-0{number:08x}{device:08x}"),
            subnet_id=SUBNETS[zone],
            vpc_id=VPC,
            primary_address=f"{network}.{4 + device}",
            device_index=device,
            attachment_status="attached",
            instance_id=InstanceId(f"i-0{number:016x}"),
            delete_on_termination=True,
            addresses=tuple(addresses[device * per_interface : (device + 1) * per_interface]),
            security_groups=(GROUP,),
            owner_id="111122223333",
        )
        for device in range(max(1, -(-held // per_interface)))
    )


def refuse_and_throttle(state: State) -> None:
    """Have EC2 refuse one action, throttle another, and run out of addresses in a subnet; and people and runs act."""
    state.limiter.open_breaker("CreateNetworkInterface", REFUSED, 55)
    state.limiter.throttled("AssignPrivateIpAddresses")
    state.network.cool_down(SUBNETS["c"], 100)
    state.events.append("Pause", {"who": "ada@workstation", "why": "upgrade of Cilium"})
    state.events.append("Resume", {"actions": "DeleteNetworkInterface", "paused_by": "ada@workstation"})
    for number in (13, 10, 22, 13):
        state.events.append(
            "AssignPrivateIpAddresses",
            {
                "node": name_of(number),
                "interface": f"eni-0{number:08x}{1:08x}",
                "subnet": SUBNETS[ZONES[number % len(ZONES)]],
                "count": 4,
            },
        )
