"""The describes: which records a request selects by id and filter, and the page of them that is answered.

Interfaces are many and described often: they are found by instance through an index, and the XML of each is
kept for as long as its record stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from eni_tasks.sandbox.ec2 import render
from eni_tasks.sandbox.ec2.errors import Ec2Error, invalid_combination, invalid_value, not_found
from eni_tasks.sandbox.ec2.query import Position, token_of
from eni_tasks.sandbox.ec2.records import (
    ElasticIp,
    Instance,
    Interface,
    Record,
    RouteTable,
    SecurityGroup,
    Subnet,
    Vpc,
    known_types,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eni_tasks.sandbox.ec2.query import Query
    from eni_tasks.sandbox.ec2.world import Table, World

MAX_FILTERS = 50
MAX_VALUES = 200
SMALLEST_PAGE = 5
BY_INSTANCE = "attachment.instance-id"
# With one of these, EC2 lists interfaces without pages in any account.
NARROWING = {BY_INSTANCE, "group-id", "mac-address", "private-dns-name", "private-ip-address", "subnet-id", "vpc-id"}
R = TypeVar("R", bound=Record)
Fields = Mapping[str, Callable[[R], Iterable[str]]]

# -- what each filter compares -----------------------------------------------------------------------
INTERFACE_FIELDS: Fields[Interface] = {
    "network-interface-id": lambda it: (it.id,),
    "attachment.instance-id": lambda it: (it.instance_id,) if it.attachment else (),
    "attachment.attachment-id": lambda it: (it.attachment.id,) if it.attachment else (),
    "attachment.device-index": lambda it: (str(it.attachment.device_index),) if it.attachment else (),
    "attachment.status": lambda it: (it.attachment.status,) if it.attachment else (),
    "availability-zone": lambda it: (it.availability_zone,),
    "description": lambda it: (it.description,),
    "group-id": lambda it: it.groups,
    "interface-type": lambda it: (it.interface_type,),
    "mac-address": lambda it: (it.mac,),
    "owner-id": lambda it: (it.owner_id,),
    "private-ip-address": lambda it: (it.primary_address,) if it.primary_address else (),
    "addresses.private-ip-address": lambda it: it.private_addresses,
    "status": lambda it: (it.status,),
    "subnet-id": lambda it: (it.subnet_id,),
    "vpc-id": lambda it: (it.vpc_id,),
}
INSTANCE_FIELDS: Fields[Instance] = {
    "instance-id": lambda it: (it.id,),
    "instance-state-name": lambda it: (it.state,),
    "instance-type": lambda it: (it.instance_type,),
    "availability-zone": lambda it: (it.availability_zone,),
    "private-ip-address": lambda it: (it.private_address,),
    "subnet-id": lambda it: (it.subnet_id,),
    "vpc-id": lambda it: (it.vpc_id,),
}
VPC_FIELDS: Fields[Vpc] = {"vpc-id": lambda it: (it.id,), "cidr": lambda it: (it.cidr,)}
SUBNET_FIELDS: Fields[Subnet] = {
    "subnet-id": lambda it: (it.id,),
    "vpc-id": lambda it: (it.vpc_id,),
    "availability-zone": lambda it: (it.availability_zone,),
}
GROUP_FIELDS: Fields[SecurityGroup] = {
    "group-id": lambda it: (it.id,),
    "group-name": lambda it: (it.name,),
    "vpc-id": lambda it: (it.vpc_id,),
}
ROUTE_TABLE_FIELDS: Fields[RouteTable] = {
    "route-table-id": lambda it: (it.id,),
    "vpc-id": lambda it: (it.vpc_id,),
    "association.subnet-id": lambda it: it.subnet_ids,
}
ELASTIC_IP_FIELDS: Fields[ElasticIp] = {
    "allocation-id": lambda it: (it.id,),
    "public-ip": lambda it: (it.public_ip,),
    "domain": lambda _: ("vpc",),
    "association-id": lambda it: (it.association.id,) if it.association else (),
    "network-interface-id": lambda it: (it.association.interface_id,) if it.association else (),
    "private-ip-address": lambda it: (it.association.private_address,) if it.association else (),
}


# -- filters: all must match, each by one of its values, with `*` and `?` ------------------------------
def _filters(query: Query) -> dict[str, list[str]]:
    filters = {each.text("Name"): each.texts("Value") for each in query.structs("Filter")}
    too_many = len(filters) > MAX_FILTERS or any(len(values) > MAX_VALUES for values in filters.values())
    if too_many:
        text = f"The maximum number of filter values specified on a single call is {MAX_VALUES}"
        raise Ec2Error("FilterLimitExceeded", text)
    return filters


def _matcher(filters: Mapping[str, list[str]], fields: Fields[R]) -> Callable[[R], bool]:
    tests = [(_field(name, fields), _accepts(values)) for name, values in filters.items()]

    def matches(record: R) -> bool:
        return all(any(map(accepts, field(record))) for field, accepts in tests)

    return matches


def _field(name: str, fields: Fields[R]) -> Callable[[R], Iterable[str]]:
    if name == "tag-key":
        return lambda record: record.tags
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return lambda record: (record.tags[key],) if key in record.tags else ()
    if name not in fields:
        raise invalid_value(f"The filter '{name}' is invalid")
    return fields[name]


def _has_wildcard(value: str) -> bool:
    return "*" in value or "?" in value


def _accepts(values: list[str]) -> Callable[[str], bool]:
    if not any(map(_has_wildcard, values)):
        return frozenset(values).__contains__
    patterns = (re.escape(value).replace(r"\*", ".*").replace(r"\?", ".") for value in values)
    pattern = re.compile("|".join(patterns), re.DOTALL)
    return lambda value: pattern.fullmatch(value) is not None


# -- listings ----------------------------------------------------------------------------------------
class Listing(msgspec.Struct, Generic[R], frozen=True):
    """How one kind of record is described.

    `ids` is the parameter that names records; with `ids_or_pages` it excludes a page size.
    """

    action: str
    kind: str
    ids: str
    element: str
    table: Callable[[World], Table[R]]
    fields: Fields[R]
    xml: Callable[[World, R], str]
    largest_page: int = 1000
    ids_or_pages: bool = False

    def describe(self, world: World, query: Query) -> str:
        """Returns the elements of the answer.

        Raises:
            Ec2Error: an unknown id or filter, a page size that is not allowed.
        """
        return self.answer(world, query, self.named(world, query))

    def named(self, world: World, query: Query) -> list[R]:
        """Returns the records that are named, or all of them."""
        records = self.table(world).view(self.action).by_id
        ids = query.texts(self.ids)
        if not ids:
            return list(records.values())
        if self.ids_or_pages and query.has("MaxResults"):
            raise invalid_combination(f"The parameter {self.ids}s cannot be used with the parameter maxResults")
        for identifier in ids:
            if identifier not in records or identifier in world.hidden:
                raise not_found(self.kind, identifier)
        return sorted((records[identifier] for identifier in set(ids)), key=lambda record: record.serial)

    def answer(self, world: World, query: Query, records: Sequence[R]) -> str:
        """Returns the page of those of `records` that match the filters."""
        if world.hidden:
            records = [record for record in records if record.id not in world.hidden]
        filters = _filters(query)
        matches = _matcher(filters, self.fields) if filters else None
        limit = world.knobs.page_limit
        if limit is None and matches:
            records = list(filter(matches, records))
        records, token = self._page(query, records, limit)
        if limit is not None and matches:
            records = list(filter(matches, records))
        malformed = world.knobs.malformed
        shown = (render.malformed(self.xml(world, each), malformed.get(each.id)) for each in records)
        return render.items(self.element, shown) + (f"<nextToken>{token}</nextToken>" if token else "")

    def _page(self, query: Query, records: Sequence[R], limit: int | None) -> tuple[Sequence[R], str]:
        position = query.position()
        if position.after:
            records = [record for record in records if record.serial > position.after]
        if not query.has("MaxResults"):
            return records, ""
        size = query.integer("MaxResults")
        if not SMALLEST_PAGE <= size <= self.largest_page:
            too_small, too_large = (
                f"greater than or equal to {SMALLEST_PAGE}",
                f"less than or equal to {self.largest_page}",
            )
            bound = too_small if size < SMALLEST_PAGE else too_large
            raise invalid_value(f"Value ( {size} ) for parameter maxResults is invalid. Expecting a value {bound}.")
        size = min(size, limit or size)
        if len(records) <= size:
            return records, ""
        return records[:size], token_of(Position(records[size - 1].serial, position.page + 1))


class InterfaceReader:
    """Describes interfaces from an index, with XML made once per record."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Interface, str]] = {}
        self._listing = Listing(
            "DescribeNetworkInterfaces",
            "interface",
            "NetworkInterfaceId",
            "networkInterfaceSet",
            lambda world: world.interfaces,
            INTERFACE_FIELDS,
            self._xml,
            ids_or_pages=True,
        )

    def describe(self, world: World, query: Query) -> str:
        """Returns the elements of the answer.

        Raises:
            Ec2Error: as for other records, and when too many would have to be listed at once.
        """
        self._check_size(world, query)
        return self._listing.answer(world, query, self._candidates(world, query))

    def _candidates(self, world: World, query: Query) -> list[Interface]:
        instances = _filters(query).get(BY_INSTANCE, [])
        if query.has(self._listing.ids) or not instances or any(map(_has_wildcard, instances)):
            return self._listing.named(world, query)
        shown = world.interfaces.view(self._listing.action)
        found = [record for each in set(instances) for record in shown.group(each)]
        return sorted(found, key=lambda record: record.serial)

    def _check_size(self, world: World, query: Query) -> None:
        if len(world.interfaces.view(self._listing.action).by_id) <= world.knobs.unpaginated_limit:
            return
        narrowed = query.has("MaxResults") or query.has(self._listing.ids) or NARROWING & _filters(query).keys()
        if not narrowed:
            text = "Unpaginated and unfiltered requests are not permitted for this account. Use MaxResults or a filter."
            raise Ec2Error("OperationNotPermitted", text)

    def _xml(self, world: World, interface: Interface) -> str:
        kept = self._kept.get(interface.id)
        if kept is not None and kept[0] is interface:
            return kept[1]
        if len(self._kept) > 2 * len(world.interfaces.truth.by_id) + 100:
            self._kept.clear()  # most of it belongs to interfaces that are gone
        xml = render.interface_xml(world, interface)
        self._kept[interface.id] = (interface, xml)
        return xml


VPCS: Listing[Vpc] = Listing(
    "DescribeVpcs", "vpc", "VpcId", "vpcSet", lambda world: world.vpcs, VPC_FIELDS, render.vpc_xml
)
SUBNETS: Listing[Subnet] = Listing(
    "DescribeSubnets",
    "subnet",
    "SubnetId",
    "subnetSet",
    lambda world: world.subnets,
    SUBNET_FIELDS,
    render.subnet_xml,
)
GROUPS: Listing[SecurityGroup] = Listing(
    "DescribeSecurityGroups",
    "group",
    "GroupId",
    "securityGroupInfo",
    lambda world: world.groups,
    GROUP_FIELDS,
    render.security_group_xml,
)
ROUTE_TABLES: Listing[RouteTable] = Listing(
    "DescribeRouteTables",
    "route table",
    "RouteTableId",
    "routeTableSet",
    lambda world: world.route_tables,
    ROUTE_TABLE_FIELDS,
    render.route_table_xml,
    largest_page=100,
)
INSTANCES: Listing[Instance] = Listing(
    "DescribeInstances",
    "instance",
    "InstanceId",
    "reservationSet",
    lambda world: world.instances,
    INSTANCE_FIELDS,
    render.instance_xml,
    ids_or_pages=True,
)
ELASTIC_IPS: Listing[ElasticIp] = Listing(
    "DescribeAddresses",
    "elastic ip",
    "AllocationId",
    "addressesSet",
    lambda world: world.elastic_ips,
    ELASTIC_IP_FIELDS,
    render.elastic_ip_xml,
)


def describe_instance_types(world: World, query: Query) -> str:
    """Returns the elements of the answer; the table fits on one page.

    Raises:
        Ec2Error: an unknown name.
    """
    malformed = world.knobs.malformed
    types = known_types(query.texts("InstanceType"))
    shown = (render.malformed(render.instance_type_xml(each), malformed.get(each.name)) for each in types)
    return render.items("instanceTypeSet", shown)
