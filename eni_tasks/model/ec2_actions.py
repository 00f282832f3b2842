"""The EC2 actions that this system calls: the one table of their names, kinds, rate limits and rights.

From it follow the default rate limits (`settings`), what `doctor` asks for, and the IAM policy that the Helm chart
ships (`make docs`). No other action is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Scope(StrEnum):
    """Which resources of one type an action may touch: a condition in the IAM policy."""

    ANY = "any"  # resources that others made: subnets, security groups, instances and their first interfaces
    OURS = "our"  # interfaces that carry both ownership tags
    NEW = "new"  # an interface that the request creates; the request gives it both ownership tags


class Bucket(NamedTuple):
    """A token bucket: how many tokens it holds, and how many are added per second."""

    size: float
    refill_per_second: float


class Read(NamedTuple):
    """An action that changes nothing. One with a `setting` is called only if that setting is given.

    `bucket` is AWS's documented rate limit of reads with a filter or pages, as all of ours are.
    """

    name: str
    setting: str = ""
    bucket: Bucket = Bucket(100, 20)


class Mutation(NamedTuple):
    """An action that changes something.

    Args:
        name: as in EC2's API.
        bucket: AWS's documented rate limit, per account and Region.
        touches: the scope of each resource type (as in IAM's ARNs) that EC2 checks rights on.
        asked_of: what `doctor` must know for a dry run, by the field's name in `ports.doctor.Sample`; empty where it
            asks about an interface that does not exist.
        setting: it is called only if that setting is given; "" if it always is.
    """

    name: str
    bucket: Bucket
    touches: Mapping[str, Scope]
    asked_of: tuple[str, ...] = ()
    setting: str = ""


READS = (
    Read("DescribeNetworkInterfaces"),
    Read("DescribeVpcs"),
    Read("DescribeSubnets"),
    Read("DescribeSecurityGroups"),
    Read("DescribeRouteTables"),
    Read("DescribeInstanceTypes"),
    Read("DescribeInstances", setting="instance_tags"),
    Read("DescribeAddresses", setting="static_addresses"),
)

INTERFACE, INSTANCE, SUBNET, GROUP = "network-interface", "instance", "subnet", "security-group"
ELASTIC_IP = "elastic-ip"

# Buckets: EC2 Developer Guide, "Request throttling". To those that are not listed there (AttachNetworkInterface,
# AssignIpv6Addresses, AssociateAddress) the default of mutating actions applies. Resource types: Service Authorization
# Reference, "Actions defined by Amazon EC2".
MUTATIONS = (
    Mutation(
        "CreateNetworkInterface",
        Bucket(100, 5),
        {INTERFACE: Scope.NEW, SUBNET: Scope.ANY, GROUP: Scope.ANY},
        asked_of=("subnet_id", "security_groups"),
    ),
    Mutation(
        "AttachNetworkInterface",
        Bucket(50, 5),
        {INTERFACE: Scope.OURS, INSTANCE: Scope.ANY},
        asked_of=("interface_id", "instance_id"),
    ),
    Mutation(
        "ModifyNetworkInterfaceAttribute",
        Bucket(100, 5),
        {INTERFACE: Scope.OURS, INSTANCE: Scope.ANY},
        asked_of=("interface_id", "attachment_id"),
    ),
    # On any interface: pods also use the addresses of the one that an instance was launched with.
    Mutation("AssignPrivateIpAddresses", Bucket(100, 5), {INTERFACE: Scope.ANY}),
    Mutation("UnassignPrivateIpAddresses", Bucket(100, 5), {INTERFACE: Scope.ANY}, setting="release_excess"),
    Mutation("DeleteNetworkInterface", Bucket(100, 5), {INTERFACE: Scope.OURS}),
    Mutation("AssignIpv6Addresses", Bucket(50, 5), {INTERFACE: Scope.ANY}, setting="ipv6"),
    Mutation(
        "AssociateAddress",
        Bucket(50, 5),
        {ELASTIC_IP: Scope.ANY, INTERFACE: Scope.ANY, INSTANCE: Scope.ANY},
        setting="static_addresses",
    ),
)

# Tags are given in the call that creates the interface; IAM checks them as an action of their own.
TAGGING_ACTION, TAGGED_BY = "CreateTags", "CreateNetworkInterface"

AWS_RATE_LIMITS: dict[str, tuple[float, float]] = {action.name: action.bucket for action in (*MUTATIONS, *READS)}
