"""The describes: which records a request selects, and the page of them that is answered.

Interfaces are many and asked for all the time: they are found by instance through an index, and each
one's XML is kept for as long as its record stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from eni_tasks.sandbox.ec2 import filters, render
from eni_tasks.sandbox.ec2.instance_types import known_types
from eni_tasks.sandbox.ec2.pages import page
from eni_tasks.sandbox.ec2.records import Instance, Interface, Record, RouteTable, SecurityGroup, Subnet, Vpc
from eni_tasks.sandbox.ec2.refusals import Refused, not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from eni_tasks.sandbox.ec2.query import Query
    from eni_tasks.sandbox.ec2.world import World

R = TypeVar("R", bound=Record)
BY_INSTANCE = "attachment.instance-id"
# With one of these, EC2 lists interfaces without pages in any account.
NARROWING = {BY_INSTANCE, "group-id", "mac-address", "private-dns-name", "private-ip-address", "subnet-id", "vpc-id"}


class Listing(msgspec.Struct, Generic[R], frozen=True):
    """How one kind of record is described.

    `ids` is the parameter that names records; with `ids_or_pages` it excludes a page size.
    """

    kind: str
    ids: str
    element: str
    records: Callable[[World], Mapping[str, R]]
    fields: Mapping[str, Callable[[R], Iterable[str]]]
    xml: Callable[[World, R], str]
    largest_page: int = 1000
    ids_or_pages: bool = False

    def describe(self, world: World, query: Query) -> str:
        """Returns the elements of the answer.

        Raises:
            Refused: an unknown id or filter, a page size that isn't allowed.
        """
        return self.answer(world, query, self.named(world, query))

    def named(self, world: World, query: Query) -> list[R]:
        """Returns the records that are named, or all of them."""
        records = self.records(world)
        ids = query.texts(self.ids)
        if not ids:
            return list(records.values())
        if self.ids_or_pages and query.has("MaxResults"):
            text = f"The parameter {self.ids}s cannot be used with the parameter maxResults"
            raise Refused("InvalidParameterCombination", text)
        for identifier in ids:
            if identifier not in records:
                raise not_found(self.kind, identifier)
        return sorted((records[identifier] for identifier in set(ids)), key=lambda record: record.serial)

    def answer(self, world: World, query: Query, records: list[R]) -> str:
        """Returns those of `records` that match the filters, as far as the page goes."""
        wanted = filters.read_filters(query)
        if wanted:
            records = list(filter(filters.matcher(wanted, self.fields), records))
        shown, token = page(query, records, self.largest_page)
        listed = render.items(self.element, (self.xml(world, record) for record in shown))
        return listed + (f"<nextToken>{token}</nextToken>" if token else "")


class InterfaceReader:
    """Describes interfaces from an index, with XML made once per record."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Interface, str]] = {}
        self._listing = Listing(
            "interface",
            "NetworkInterfaceId",
            "networkInterfaceSet",
            lambda world: world.interfaces.shown.by_id,
            filters.INTERFACE,
            self._xml,
            ids_or_pages=True,
        )

    def describe(self, world: World, query: Query) -> str:
        """Returns the elements of the answer.

        Raises:
            Refused: as for other records, and when too many would have to be listed at once.
        """
        _check_size(world, query)
        records = self._candidates(world, query)
        if world.hidden:
            records = [record for record in records if record.id not in world.hidden]
        return self._listing.answer(world, query, records)

    def _candidates(self, world: World, query: Query) -> list[Interface]:
        instances = filters.read_filters(query).get(BY_INSTANCE, [])
        if query.has(self._listing.ids) or not instances or any(set("*?") & set(each) for each in instances):
            return self._listing.named(world, query)
        found = [record for each in set(instances) for record in world.interfaces.shown.group(each)]
        return sorted(found, key=lambda record: record.serial)

    def _xml(self, world: World, interface: Interface) -> str:
        kept = self._kept.get(interface.id)
        if kept is not None and kept[0] is interface:
            return kept[1]
        if len(self._kept) > 2 * len(world.interfaces.shown.by_id) + 100:
            self._kept.clear()  # most of it belongs to interfaces that are gone
        xml = render.interface_xml(world, interface)
        self._kept[interface.id] = (interface, xml)
        return xml


def _check_size(world: World, query: Query) -> None:
    if len(world.interfaces.shown.by_id) <= world.knobs.unpaginated_limit:
        return
    narrowed = (
        query.has("MaxResults") or query.has("NetworkInterfaceId") or NARROWING & filters.read_filters(query).keys()
    )
    if not narrowed:
        text = "Unpaginated and unfiltered requests are not permitted for this account. Use MaxResults or a filter."
        raise Refused("OperationNotPermitted", text)


VPCS: Listing[Vpc] = Listing("vpc", "VpcId", "vpcSet", lambda world: world.vpcs, filters.VPC, render.vpc_xml)
SUBNETS: Listing[Subnet] = Listing(
    "subnet", "SubnetId", "subnetSet", lambda world: world.subnets, filters.SUBNET, render.subnet_xml
)
GROUPS: Listing[SecurityGroup] = Listing(
    "group", "GroupId", "securityGroupInfo", lambda world: world.groups, filters.GROUP, render.security_group_xml
)
ROUTE_TABLES: Listing[RouteTable] = Listing(
    "route table",
    "RouteTableId",
    "routeTableSet",
    lambda world: world.route_tables,
    filters.ROUTE_TABLE,
    render.route_table_xml,
    largest_page=100,
)
INSTANCES: Listing[Instance] = Listing(
    "instance",
    "InstanceId",
    "reservationSet",
    lambda world: world.instances.shown.by_id,
    filters.INSTANCE,
    render.instance_xml,
    ids_or_pages=True,
)


def describe_instance_types(_world: World, query: Query) -> str:
    """Returns the elements of the answer; the table fits on one page.

    Raises:
        Refused: an unknown name.
    """
    types = known_types(query.texts("InstanceType"))
    return render.items("instanceTypeSet", map(render.instance_type_xml, types))
