"""EC2's filters: all filters must match, one of the values of each, with `*` and `?`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from eni_tasks.sandbox.ec2.records import Instance, Interface, Record, RouteTable, SecurityGroup, Subnet, Vpc
from eni_tasks.sandbox.ec2.refusals import Refused, invalid_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from eni_tasks.sandbox.ec2.query import Query

MAX_FILTERS = 50
MAX_VALUES = 200
R = TypeVar("R", bound=Record)

INTERFACE: Mapping[str, Callable[[Interface], Iterable[str]]] = {
    "network-interface-id": lambda it: (it.id,),
    "attachment.instance-id": lambda it: (it.instance_id,) if it.attachment else (),
    "attachment.attachment-id": lambda it: (it.attachment.id,) if it.attachment else (),
    "attachment.device-index": lambda it: (str(it.attachment.device_index),) if it.attachment else (),
    "attachment.status": lambda it: (it.attachment.status,) if it.attachment else (),
    "availability-zone": lambda it: (it.availability_zone,),
    "description": lambda it: (it.description,),
    "group-id": lambda it: it.groups,
    "mac-address": lambda it: (it.mac,),
    "owner-id": lambda it: (it.owner_id,),
    "private-ip-address": lambda it: (it.primary_address,),
    "addresses.private-ip-address": lambda it: (it.primary_address, *it.addresses),
    "status": lambda it: (it.status,),
    "subnet-id": lambda it: (it.subnet_id,),
    "vpc-id": lambda it: (it.vpc_id,),
}
INSTANCE: Mapping[str, Callable[[Instance], Iterable[str]]] = {
    "instance-id": lambda it: (it.id,),
    "instance-state-name": lambda it: (it.state,),
    "instance-type": lambda it: (it.instance_type,),
    "availability-zone": lambda it: (it.availability_zone,),
    "private-ip-address": lambda it: (it.private_address,),
    "subnet-id": lambda it: (it.subnet_id,),
    "vpc-id": lambda it: (it.vpc_id,),
}
VPC: Mapping[str, Callable[[Vpc], Iterable[str]]] = {
    "vpc-id": lambda it: (it.id,),
    "cidr": lambda it: (it.cidr,),
}
SUBNET: Mapping[str, Callable[[Subnet], Iterable[str]]] = {
    "subnet-id": lambda it: (it.id,),
    "vpc-id": lambda it: (it.vpc_id,),
    "availability-zone": lambda it: (it.availability_zone,),
}
GROUP: Mapping[str, Callable[[SecurityGroup], Iterable[str]]] = {
    "group-id": lambda it: (it.id,),
    "group-name": lambda it: (it.name,),
    "vpc-id": lambda it: (it.vpc_id,),
}
ROUTE_TABLE: Mapping[str, Callable[[RouteTable], Iterable[str]]] = {
    "route-table-id": lambda it: (it.id,),
    "vpc-id": lambda it: (it.vpc_id,),
    "association.subnet-id": lambda it: it.subnet_ids,
}


def read_filters(query: Query) -> dict[str, list[str]]:
    """Returns the filters of a request, refusing too many of them.

    Raises:
        Refused: more filters or values than EC2 takes.
    """
    filters = {each.text("Name"): each.texts("Value") for each in query.structs("Filter")}
    too_many = len(filters) > MAX_FILTERS or any(len(values) > MAX_VALUES for values in filters.values())
    if too_many:
        text = f"The maximum number of filter values specified on a single call is {MAX_VALUES}"
        raise Refused("FilterLimitExceeded", text)
    return filters


def matcher(
    filters: Mapping[str, list[str]], fields: Mapping[str, Callable[[R], Iterable[str]]]
) -> Callable[[R], bool]:
    """Build a test for records.

    Args:
        filters: values by name of the filter.
        fields: what each filter looks at.

    Raises:
        Refused: an unknown filter.
    """
    tests = [(_field(name, fields), _accepts(values)) for name, values in filters.items()]

    def matches(record: R) -> bool:
        return all(any(map(accepts, field(record))) for field, accepts in tests)

    return matches


def _field(name: str, fields: Mapping[str, Callable[[R], Iterable[str]]]) -> Callable[[R], Iterable[str]]:
    if name == "tag-key":
        return lambda record: record.tags
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return lambda record: (record.tags[key],) if key in record.tags else ()
    if name not in fields:
        raise invalid_value(f"The filter '{name}' is invalid")
    return fields[name]


def _accepts(values: list[str]) -> Callable[[str], bool]:
    if not any(set("*?") & set(value) for value in values):
        return frozenset(values).__contains__
    patterns = (re.escape(value).replace(r"\*", ".*").replace(r"\?", ".") for value in values)
    pattern = re.compile("|".join(patterns), re.DOTALL)
    return lambda value: pattern.fullmatch(value) is not None
