"""The state of this EC2: tables, address pools, things that happen later, and one lock around it all.

Knows how to keep and to find records; what EC2 allows is decided in `interfaces` and `instances`.
"""

from __future__ import annotations

import heapq
import threading
import time
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, TypeVar

from eni_tasks.sandbox.ec2.addresses import AddressPool
from eni_tasks.sandbox.ec2.knobs import Knobs
from eni_tasks.sandbox.ec2.records import Instance, Interface, Record, RouteTable, SecurityGroup, Subnet, Vpc
from eni_tasks.sandbox.ec2.refusals import Refused, not_found, subnet_full
from eni_tasks.sandbox.ec2.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

R = TypeVar("R", bound=Record)
OWNER_ID = "123456789012"


class World:
    """One account in one region. Callers hold `lock` and call `settle` before they look.

    Args:
        clock: the time in seconds since the epoch; tests pass their own.
        region: names the zones.
    """

    def __init__(self, clock: Callable[[], float] = time.time, region: str = "eu-west-1") -> None:
        self.lock = threading.RLock()
        self.clock = clock
        self.region = region
        self.knobs = Knobs()
        self.vpcs: dict[str, Vpc] = {}
        self.subnets: dict[str, Subnet] = {}
        self.groups: dict[str, SecurityGroup] = {}
        self.route_tables: dict[str, RouteTable] = {}
        self.pools: dict[str, AddressPool] = {}
        self.instances: Table[Instance] = Table()
        self.interfaces: Table[Interface] = Table(lambda interface: interface.instance_id)
        self.attachments: dict[str, str] = {}  # attachment id -> interface id
        self.client_tokens: dict[str, tuple[object, Interface]] = {}
        self.hidden: frozenset[str] = frozenset()  # interfaces that the read in progress doesn't show
        # The oracle listens here: which call takes which addresses off an interface.
        self.on_release: Callable[[str, Interface, Sequence[str]], None] = lambda _call, _interface, _addresses: None
        self._serial = 0
        self._later: list[tuple[float, int, Callable[[], None]]] = []

    # -- time ----------------------------------------------------------------------------------
    def settle(self) -> float:
        """Let happen what is due.

        Returns:
            The time now.
        """
        now = self.clock()
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        self.instances.show(now)
        self.interfaces.show(now)
        return now

    def later(self, delay_seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen after a delay; at once if there is none."""
        if delay_seconds <= 0:
            happen()
        else:
            heapq.heappush(self._later, (self.clock() + delay_seconds, self.next_serial(), happen))

    # -- the network ---------------------------------------------------------------------------
    def next_serial(self) -> int:
        """Returns the next number; ids are made of it, so that a run can be told again."""
        self._serial += 1
        return self._serial

    def add_vpc(self, cidr: str, secondary_cidrs: Sequence[str] = (), tags: Mapping[str, str] | None = None) -> Vpc:
        """Add a VPC with its default security group."""
        serial = self.next_serial()
        vpc = Vpc(
            id=new_id("vpc", serial),
            serial=serial,
            cidr=cidr,
            secondary_cidrs=tuple(secondary_cidrs),
            tags=dict(tags or {}),
        )
        self.vpcs[vpc.id] = vpc
        self.add_security_group(vpc.id, "default")
        return vpc

    def add_subnet(self, vpc_id: str, zone: str, cidr: str, tags: Mapping[str, str] | None = None) -> Subnet:
        """Add a subnet to a zone, such as "a"."""
        serial = self.next_serial()
        subnet = Subnet(
            id=new_id("subnet", serial),
            serial=serial,
            vpc_id=self.vpcs[vpc_id].id,
            availability_zone=self.region + zone,
            cidr=str(IPv4Network(cidr)),
            tags=dict(tags or {}),
        )
        self.subnets[subnet.id] = subnet
        self.pools[subnet.id] = AddressPool(cidr)
        return subnet

    def add_security_group(self, vpc_id: str, name: str, tags: Mapping[str, str] | None = None) -> SecurityGroup:
        """Add a security group."""
        serial = self.next_serial()
        identifier = new_id("sg", serial)
        group = SecurityGroup(id=identifier, serial=serial, vpc_id=vpc_id, name=name, tags=dict(tags or {}))
        self.groups[group.id] = group
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
        self.route_tables[table.id] = table
        return table

    def free(self, subnet_id: str) -> int:
        """Returns how many addresses of a subnet can be had."""
        return 0 if subnet_id in self.knobs.exhausted_subnets else self.pools[subnet_id].free

    def take_addresses(self, subnet_id: str, count: int) -> tuple[str, ...]:
        """Take addresses of a subnet, all or none; refuses when it has fewer."""
        if count > self.free(subnet_id):
            raise subnet_full()
        return self.pools[subnet_id].take(count)

    # -- finding and keeping -------------------------------------------------------------------
    def subnet(self, subnet_id: str) -> Subnet:
        """Returns a subnet, or refuses with NotFound."""
        if subnet_id not in self.subnets:
            raise not_found("subnet", subnet_id)
        return self.subnets[subnet_id]

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
            raise Refused("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
        if found is None or found.launched_at + self.knobs.new_id_lag_seconds > self.clock():
            raise not_found("instance", instance_id)
        return found

    def attached(self, instance_id: str) -> list[Interface]:
        """Returns the interfaces that hold a place on an instance, also those that come or go."""
        return self.interfaces.truth.group(instance_id)

    def keep_interface(self, identifier: str, interface: Interface | None) -> None:
        """Write (or with None delete) an interface; reads show it after the lag."""
        now = self.clock()
        self.interfaces.put(identifier, interface, shown_at=now + self.knobs.read_lag_seconds)
        self.interfaces.show(now)

    def keep_instance(self, identifier: str, instance: Instance | None) -> None:
        """Write (or with None forget) an instance; reads show it after the lag."""
        now = self.clock()
        self.instances.put(identifier, instance, shown_at=now + self.knobs.read_lag_seconds)
        self.instances.show(now)


def new_id(prefix: str, serial: int) -> str:
    """Returns an id in EC2's form."""
    return f"{prefix}-{serial:017x}"
