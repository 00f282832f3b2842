"""The reading half of the EC2 port: batches, pages, and all or nothing.

A read is complete or it fails: one page that can't be read fails the listing, so that a missing item is not taken for a
deleted one. The services decide when to read and what to believe.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from eni_tasks.adapters.ec2 import translate
from eni_tasks.adapters.ec2.errors import malformed
from eni_tasks.domain.interface_item import interface_from_item
from eni_tasks.errors import Ec2Error, InvalidInput
from eni_tasks.model.network import (
    ElasticIp,
    Infrastructure,
    InstanceId,
    Interface,
    InterfaceId,
    Limits,
    VpcId,
    matches,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from eni_tasks.adapters.ec2.client import Ec2Calls
    from eni_tasks.adapters.ec2.translate import Item

FILTER_VALUES = 200  # EC2 takes no more values in one filter
PAGE = 1000  # the largest page of most listings
ROUTE_TABLE_PAGE = 100  # and of DescribeRouteTables
TYPE_NAMES = 100  # EC2 takes no more names in one DescribeInstanceTypes

_TOKEN_UNKNOWN = ("InvalidNextToken", "InvalidPaginationToken")
_WORD = re.compile(r"[\w.-]+")

Text = TypeVar("Text", bound=str)
Value = TypeVar("Value")


class Ec2Reads:
    """Reads for `BotoEc2`, which brings the attributes."""

    _calls: Ec2Calls
    _warn: Callable[[str], None]

    def interfaces_of(
        self, instance_ids: Sequence[InstanceId]
    ) -> Mapping[InstanceId, tuple[Interface, ...] | InvalidInput]:
        """Read all interfaces attached to instances; see the port."""
        found: dict[InstanceId, tuple[Interface, ...] | InvalidInput] = {}
        for batch in _batches(_plain(instance_ids), FILTER_VALUES):
            found |= self._interfaces_of_batch(batch)
        return found

    def interfaces_by_id(self, interface_ids: Sequence[InterfaceId]) -> Mapping[InterfaceId, Interface]:
        """Read interfaces by id; see the port.

        Absence means "does not exist" here, so an item that cannot be understood fails the read.
        """
        found: dict[InterfaceId, Interface] = {}
        for batch in _batches(_plain(interface_ids), FILTER_VALUES):
            # The filter, not NetworkInterfaceIds: that refuses pages, and one unknown id fails all.
            for item in self._listing(
                "DescribeNetworkInterfaces",
                "NetworkInterfaces",
                MaxResults=PAGE,
                Filters=[_filter("network-interface-id", batch)],
            ):
                interface = interface_in("DescribeNetworkInterfaces", item, mutation=False)
                found[interface.id] = interface
        return found

    def unattached_interfaces(self, tags: Mapping[str, str], vpc_ids: Collection[VpcId]) -> tuple[Interface, ...]:
        """List unattached interfaces by tags and VPCs; see the port."""
        if not tags:
            return ()
        tagged = [_filter(f"tag:{key}", [value]) for key, value in tags.items()]
        items: list[Item] = []
        for batch in _batches(_plain(vpc_ids), FILTER_VALUES):
            filters = [_filter("status", ["available"]), _filter("vpc-id", batch), *tagged]
            items += self._listing("DescribeNetworkInterfaces", "NetworkInterfaces", MaxResults=PAGE, Filters=filters)
        # What this system makes has a private IPv4 address.
        return tuple(found for found in self._understood(items, interface_from_item) if found.primary_address)

    def tagged_instances(self, tags: Mapping[str, str]) -> frozenset[InstanceId]:
        """Name the instances that carry all `tags`; none for no tags. See the port."""
        if not tags:
            return frozenset()
        reservations = self._listing(
            "DescribeInstances",
            "Reservations",
            MaxResults=PAGE,
            Filters=[_filter(f"tag:{key}", [value]) for key, value in tags.items()],
        )
        return frozenset(
            InstanceId(instance["InstanceId"])
            for reservation in reservations
            for instance in reservation.get("Instances", ())
            if "InstanceId" in instance
        )

    def free_elastic_ips(self, tags: Mapping[str, str]) -> tuple[ElasticIp, ...]:
        """List the Elastic IPs that carry all `tags` and are not associated; see the port."""
        if not tags:
            return ()
        # A backslash would change the meaning of the sign after it. Wildcards let more through: see `matches` below.
        filters = [_filter(f"tag:{key}", [value.replace("\\", "\\\\")]) for key, value in tags.items()]
        items = self._listing("DescribeAddresses", "Addresses", Filters=filters)
        free = [
            item
            for item in items
            if not (item.get("AssociationId") or item.get("NetworkInterfaceId") or item.get("InstanceId"))
            and matches(tags, translate.tags_of(item))
        ]
        return tuple(self._understood(free, translate.elastic_ip))

    def infrastructure(self, vpc_ids: Collection[VpcId]) -> Infrastructure:
        """Read VPCs, subnets, security groups and route tables; see the port."""
        vpcs, subnets, groups, tables = [], [], [], []
        for batch in _batches(_plain(vpc_ids), FILTER_VALUES):
            in_vpcs = [_filter("vpc-id", batch)]
            page, table_page = {"MaxResults": PAGE}, {"MaxResults": ROUTE_TABLE_PAGE}
            vpcs += self._listing("DescribeVpcs", "Vpcs", Filters=in_vpcs, **page)
            subnets += self._listing("DescribeSubnets", "Subnets", Filters=in_vpcs, **page)
            groups += self._listing("DescribeSecurityGroups", "SecurityGroups", Filters=in_vpcs, **page)
            tables += self._listing("DescribeRouteTables", "RouteTables", Filters=in_vpcs, **table_page)
        return Infrastructure(
            vpcs={vpc.id: vpc for vpc in self._understood(vpcs, translate.vpc)},
            subnets={subnet.id: subnet for subnet in self._understood(subnets, translate.subnet)},
            security_groups={group.id: group for group in self._understood(groups, translate.security_group)},
            route_tables=tuple(self._understood(tables, translate.route_table)),
        )

    def limits(self, instance_types: Collection[str]) -> Mapping[str, Limits]:
        """Read what the named types can carry; see the port."""
        # A name of other signs is no type, and might make EC2 refuse those asked for with it.
        names = [name for name in dict.fromkeys(instance_types) if _WORD.fullmatch(name)]
        found: dict[str, Limits] = {}
        for batch in _batches(names, TYPE_NAMES):
            items = self._instance_types(batch)
            found |= {limits.instance_type: limits for limits in self._understood(items, translate.limits)}
        return found

    def _interfaces_of_batch(
        self, instance_ids: Sequence[InstanceId]
    ) -> dict[InstanceId, tuple[Interface, ...] | InvalidInput]:
        found: dict[InstanceId, list[Interface]] = {instance_id: [] for instance_id in instance_ids}
        unclear: dict[InstanceId, InvalidInput] = {}
        for item in self._listing(
            "DescribeNetworkInterfaces",
            "NetworkInterfaces",
            MaxResults=PAGE,
            Filters=[_filter("attachment.instance-id", instance_ids)],
        ):
            instance_id = InstanceId(item.get("Attachment", {}).get("InstanceId", ""))
            if not instance_id:
                # It may belong to any of them, so none of them is known.
                name = item.get("NetworkInterfaceId", "without id")
                what = f"cannot be used: EC2 interface {name}: its attachment names no instance."
                raise malformed("DescribeNetworkInterfaces", what, mutation=False)
            if instance_id not in found:
                continue
            try:
                found[instance_id].append(interface_from_item(item))
            except InvalidInput as error:
                unclear[instance_id] = error
                self._warn(f"instance {instance_id} is left out of this read: {error}")
        return {instance_id: tuple(interfaces) for instance_id, interfaces in found.items()} | unclear

    def _instance_types(self, names: list[str]) -> list[Item]:
        """Ask for types by name; those that EC2 does not know are left out."""
        while names:
            try:
                return self._listing("DescribeInstanceTypes", "InstanceTypes", InstanceTypes=names)
            except Ec2Error as error:
                unknown = set(_WORD.findall(error.message)) if error.code == "InvalidInstanceType" else set()
                if unknown.isdisjoint(names):
                    raise
                names = [name for name in names if name not in unknown]
        return []

    def _listing(self, action: str, key: str, **parameters: object) -> list[Item]:
        """Read all pages; once more from the start if EC2 no longer knows the token."""
        try:
            return self._pages(action, key, parameters)
        except Ec2Error as error:
            if error.code not in _TOKEN_UNKNOWN:
                raise
        return self._pages(action, key, parameters)

    def _pages(self, action: str, key: str, parameters: dict[str, object]) -> list[Item]:
        items: list[Item] = []
        token: str | None = None
        while True:
            answer = self._calls.read(action, **parameters, **({"NextToken": token} if token else {}))
            if key not in answer:
                raise malformed(action, f"has no {key}", mutation=False)
            items += answer[key]
            following = answer.get("NextToken")
            if not following:
                return items
            if following == token:
                raise malformed(action, "repeats its NextToken", mutation=False)
            token = following

    def _understood(self, items: Iterable[Item], read: Callable[[Item], Value]) -> Iterator[Value]:
        """Translate items; one that lacks a field is left out with a warning."""
        for item in items:
            try:
                yield read(item)
            except InvalidInput as error:
                self._warn(f"left out: {error}")


def interface_in(action: str, item: Item, *, mutation: bool) -> Interface:
    """Read the interface that an answer is about.

    Raises:
        Ec2Error: the item cannot be understood.
    """
    try:
        return interface_from_item(item)
    except InvalidInput as error:
        raise malformed(action, f"cannot be used: {error}", mutation=mutation) from error


def _plain(ids: Iterable[Text]) -> list[Text]:
    """Keep each id once, and none that a filter would take for a pattern or for everything."""
    return [name for name in dict.fromkeys(ids) if name and not set(name) & set("*?\\")]


def _batches(names: Sequence[Text], size: int) -> Iterator[list[Text]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])


def _filter(name: str, values: Sequence[str]) -> dict[str, object]:
    return {"Name": name, "Values": list(values)}
