"""The state of this EC2: tables of records, address pools, things that happen later, and one lock.

This module keeps and finds records; `interfaces` and `instances` decide what EC2 allows. `build_default_world` builds
a network to start from.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from eni_tasks.sandbox.ec2.address_pools import Ipv4Pool, Ipv6Pool
from eni_tasks.sandbox.ec2.errors import Ec2Error, not_found, subnet_full
from eni_tasks.sandbox.ec2.knobs import Knobs
from eni_tasks.sandbox.ec2.records import (
    BlockState,
    CidrBlock,
    ElasticIp,
    Instance,
    Interface,
    Record,
    RouteTable,
    SecurityGroup,
    Subnet,
    Vpc,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

R = TypeVar("R", bound=Record)
OWNER_ID = "123456789012"
ZONES = "abcdef"


class Index(Generic[R]):
    """Records by id and, for quick look-up, by one group that each belongs to.

    Args:
        group_of: names the group of a record, "" for none.
    """

    def __init__(self, group_of: Callable[[R], str]) -> None:
        self._group_of = group_of
        self._groups: dict[str, dict[str, R]] = {}
        self.by_id: dict[str, R] = {}

    def put(self, identifier: str, record: R | None) -> None:
        """Add, replace or (None) remove a record."""
        old = self.by_id.get(identifier)
        if old is not None:
            group = self._group_of(old)
            self._groups[group].pop(identifier)
            if not self._groups[group]:
                del self._groups[group]
        if record is None:
            self.by_id.pop(identifier, None)
            return
        self.by_id[identifier] = record
        self._groups.setdefault(self._group_of(record), {})[identifier] = record

    def group(self, name: str) -> list[R]:
        """Returns the records of a group."""
        return list(self._groups.get(name, {}).values())


class Table(Generic[R]):
    """All records of one kind: the truth, and a view for each action that reads them.

    EC2's reads are eventually consistent. A write changes the truth at once. A view shows writes after the
    lag of its action, in the order in which they were made, so a read always shows some earlier truth.

    Args:
        actions: the describes that read the table.
        group_of: names the group of a record, "" for none.
    """

    def __init__(self, *actions: str, group_of: Callable[[R], str] = lambda _: "") -> None:
        self.truth: Index[R] = Index(group_of)
        self._views: dict[str, Index[R]] = {action: Index(group_of) for action in actions}
        self._late: dict[str, deque[tuple[float, str, R | None]]] = {action: deque() for action in actions}

    def put(self, identifier: str, record: R | None, *, now: float, lag_of: Callable[[str], float]) -> None:
        """Write a record (None: remove it); each view shows it after the lag of its action, in seconds."""
        self.truth.put(identifier, record)
        for action, late in self._late.items():
            late.append((now + lag_of(action), identifier, record))
        self.show(now)

    def show(self, now: float) -> None:
        """Let the views show what is due; an entry waits for those written before it."""
        for action, late in self._late.items():
            while late and late[0][0] <= now:
                _, identifier, record = late.popleft()
                self._views[action].put(identifier, record)

    def view(self, action: str) -> Index[R]:
        """Returns what an action shows."""
        return self._views[action]


class World:
    """One account in one region. Callers hold `lock` and call `settle` before they read.

    Args:
        clock: the Unix time in seconds; tests pass their own clock.
        region: names the zones.
    """

    def __init__(self, clock: Callable[[], float] = time.time, region: str = "eu-west-1") -> None:
        self.lock = threading.RLock()
        self.clock = clock
        self.region = region
        self.knobs = Knobs()
        self.vpcs: Table[Vpc] = Table("DescribeVpcs")
        self.subnets: Table[Subnet] = Table("DescribeSubnets")
        self.groups: Table[SecurityGroup] = Table("DescribeSecurityGroups")
        self.route_tables: Table[RouteTable] = Table("DescribeRouteTables")
        self.instances: Table[Instance] = Table("DescribeInstances")
        self.interfaces: Table[Interface] = Table(
            "DescribeNetworkInterfaces", "DescribeInstances", group_of=lambda interface: interface.instance_id
        )
        self.elastic_ips: Table[ElasticIp] = Table("DescribeAddresses")
        self._tables: tuple[Table[Any], ...] = (
            self.vpcs,
            self.subnets,
            self.groups,
            self.route_tables,
            self.instances,
            self.interfaces,
            self.elastic_ips,
        )
        self.pools: dict[str, Ipv4Pool] = {}
        self.ipv6_pools: dict[str, Ipv6Pool] = {}
        self.attachments: dict[str, str] = {}  # attachment id -> interface id
        self.client_tokens: dict[str, tuple[object, Interface]] = {}
        self.hidden: frozenset[str] = frozenset()  # ids that the read in progress does not show
        # Set by the oracle: which call takes which addresses and prefixes off an interface.
        self.on_release: Callable[[str, Interface, Sequence[str]], None] = lambda _call, _interface, _names: None
        self._serial = 0
        self._later: list[tuple[float, int, Callable[[], None]]] = []

    # -- time ----------------------------------------------------------------------------------
    def settle(self) -> float:
        """Let everything happen that is due.

        Returns:
            The time now.
        """
        now = self.clock()
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        for table in self._tables:
            table.show(now)
        return now

    def later(self, delay_seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen after a delay; at once if there is none."""
        if delay_seconds <= 0:
            happen()
        else:
            heapq.heappush(self._later, (self.clock() + delay_seconds, self.next_serial(), happen))

    # -- the network ---------------------------------------------------------------------------
    def next_serial(self) -> int:
        """Returns the next number; ids are made of it, so that a run with the same calls has the same ids."""
        self._serial += 1
        return self._serial

    def add_vpc(
        self,
        cidr: str,
        secondary_cidrs: Sequence[str] = (),
        tags: Mapping[str, str] | None = None,
        ipv6_cidr: str = "",
    ) -> Vpc:
        """Add a VPC with its default security group."""
        serial = self.next_serial()
        vpc = Vpc(
            id=new_id("vpc", serial),
            serial=serial,
            cidr=cidr,
            secondary_blocks=tuple(map(CidrBlock, secondary_cidrs)),
            ipv6_blocks=(CidrBlock(ipv6_cidr),) if ipv6_cidr else (),
            tags=dict(tags or {}),
        )
        self.put(self.vpcs, vpc.id, vpc)
        self.add_security_group(vpc.id, "default")
        return vpc

    def set_cidr_block(self, vpc_id: str, cidr: str, state: BlockState) -> Vpc:
        """Associate a secondary or IPv6 block with a VPC, or change the state of its association."""
        vpc = self.vpcs.truth.by_id[vpc_id]
        blocks = vpc.ipv6_blocks if ":" in cidr else vpc.secondary_blocks
        changed = tuple(CidrBlock(each.cidr, state) if each.cidr == cidr else each for each in blocks)
        if cidr not in {each.cidr for each in blocks}:
            changed = (*blocks, CidrBlock(cidr, state))
        vpc = replace(vpc, ipv6_blocks=changed) if ":" in cidr else replace(vpc, secondary_blocks=changed)
        self.put(self.vpcs, vpc.id, vpc)
        return vpc

    def add_subnet(
        self, vpc_id: str, zone: str, cidr: str, tags: Mapping[str, str] | None = None, ipv6_cidr: str = ""
    ) -> Subnet:
        """Add a subnet to a zone, such as "a": dual-stack if it has an IPv6 block, IPv6-only if `cidr` is ""."""
        serial = self.next_serial()
        subnet = Subnet(
            id=new_id("subnet", serial),
            serial=serial,
            vpc_id=self.vpcs.truth.by_id[vpc_id].id,
            availability_zone=self.region + zone,
            cidr=str(IPv4Network(cidr)) if cidr else "",
            ipv6_cidr=str(IPv6Network(ipv6_cidr)) if ipv6_cidr else "",
            tags=dict(tags or {}),
        )
        self.put(self.subnets, subnet.id, subnet)
        if cidr:
            self.pools[subnet.id] = Ipv4Pool(cidr, lambda: self._count_available(subnet.id))
            self._count_available(subnet.id)
        if ipv6_cidr:
            self.ipv6_pools[subnet.id] = Ipv6Pool(ipv6_cidr)
        return self.subnets.truth.by_id[subnet.id]

    def _count_available(self, subnet_id: str) -> None:
        counted = replace(self.subnets.truth.by_id[subnet_id], available=self.pools[subnet_id].free)
        self.put(self.subnets, subnet_id, counted)

    def add_security_group(self, vpc_id: str, name: str, tags: Mapping[str, str] | None = None) -> SecurityGroup:
        """Add a security group."""
        serial = self.next_serial()
        identifier = new_id("sg", serial)
        group = SecurityGroup(id=identifier, serial=serial, vpc_id=vpc_id, name=name, tags=dict(tags or {}))
        self.put(self.groups, group.id, group)
        return group

    def add_route_table(
        self, vpc_id: str, subnet_ids: Sequence[str] = (), *, main: bool = False, tags: Mapping[str, str] | None = None
    ) -> RouteTable:
        """Add a route table."""
        serial = self.next_serial()
        table = RouteTable(
            id=new_id("rtb", serial),
            serial=serial,
            vpc_id=vpc_id,
            subnet_ids=tuple(subnet_ids),
            main=main,
            tags=dict(tags or {}),
        )
        self.put(self.route_tables, table.id, table)
        return table

    def free(self, subnet_id: str) -> int:
        """Returns how many IPv4 addresses of a subnet can be assigned."""
        exhausted = subnet_id in self.knobs.exhausted_subnets or subnet_id not in self.pools
        return 0 if exhausted else self.pools[subnet_id].free

    def usable_pool(self, subnet_id: str) -> Ipv4Pool:
        """Returns the IPv4 pool of a subnet; refuses when the subnet is exhausted."""
        if subnet_id in self.knobs.exhausted_subnets:
            raise subnet_full()
        return self.pools[subnet_id]

    # -- finding and keeping -------------------------------------------------------------------
    def subnet(self, subnet_id: str) -> Subnet:
        """Returns a subnet, or refuses with NotFound."""
        if subnet_id not in self.subnets.truth.by_id:
            raise not_found("subnet", subnet_id)
        return self.subnets.truth.by_id[subnet_id]

    def interface(self, interface_id: str) -> Interface:
        """Returns an interface as it is, or refuses with NotFound, also while its id is too new."""
        found = self.interfaces.truth.by_id.get(interface_id)
        if found is None or found.created_at + self.knobs.new_id_lag_seconds > self.clock():
            raise not_found("interface", interface_id)
        return found

    def instance(self, instance_id: str) -> Instance:
        """Returns an instance as it is, or refuses with NotFound, also while its id is too new."""
        found = self.instances.truth.by_id.get(instance_id)
        if found is None and not instance_id.startswith("i-"):
            raise Ec2Error("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
        if found is None or found.launched_at + self.knobs.new_id_lag_seconds > self.clock():
            raise not_found("instance", instance_id)
        return found

    def elastic_ip(self, allocation_id: str) -> ElasticIp:
        """Returns an Elastic IP, or refuses with NotFound."""
        if allocation_id not in self.elastic_ips.truth.by_id:
            raise not_found("elastic ip", allocation_id)
        return self.elastic_ips.truth.by_id[allocation_id]

    def attached(self, instance_id: str) -> list[Interface]:
        """Returns the interfaces that hold a place on an instance, also those that are attaching or detaching."""
        return self.interfaces.truth.group(instance_id)

    def put(self, table: Table[R], identifier: str, record: R | None) -> None:
        """Write (or with None delete) a record; reads show it after their lag."""
        table.put(identifier, record, now=self.clock(), lag_of=self.knobs.read_lag)

    def keep_interface(self, identifier: str, interface: Interface | None) -> None:
        """Write (or with None delete) an interface."""
        self.put(self.interfaces, identifier, interface)

    def keep_instance(self, identifier: str, instance: Instance | None) -> None:
        """Write (or with None forget) an instance."""
        self.put(self.instances, identifier, instance)


def new_id(prefix: str, serial: int) -> str:
    """Returns an id in EC2's form."""
    return f"{prefix}-{serial:017x}"


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
