"""EC2, as the services see it.

Every method raises `Ec2Error` with the reaction that its code asks for; a method that reads in
pages or batches raises if any part fails, so that a half-read answer never leaves the adapter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import (
    ElasticIp,
    Infrastructure,
    InstanceId,
    Interface,
    InterfaceId,
    Limits,
    SubnetId,
    VpcId,
)


class ReadLimits(Protocol):
    """What permits reads: asked before each page."""

    def take(self, action: str) -> None:
        """Wait shortly for the permission; raises TransientError if it takes longer: nothing is sent then."""
        ...

    def throttled(self, action: str) -> None:
        """Take note that EC2 throttled the action."""
        ...


class Ec2(Protocol):
    """The calls that this system makes, and no other."""

    def interfaces_of(
        self, instance_ids: Sequence[InstanceId]
    ) -> Mapping[InstanceId, tuple[Interface, ...] | InvalidInput]:
        """Read all interfaces attached to instances, up to 200 instances in one call, all pages.

        Returns:
            One entry per instance asked for; an instance of which EC2 showed nothing has (). One of which an item
            can't be understood has the error that says why: that is unknown, not zero.
        """
        ...

    def interfaces_by_id(self, interface_ids: Sequence[InterfaceId]) -> Mapping[InterfaceId, Interface]:
        """Read interfaces by id; one that does not exist is missing from the answer."""
        ...

    def unattached_interfaces(self, tags: Mapping[str, str], vpc_ids: Collection[VpcId]) -> tuple[Interface, ...]:
        """List the interfaces in status "available" that carry all `tags` and are in one of the VPCs, all pages.

        Returns:
            What EC2's filters let through; nothing, and no call, without tags or VPCs. An item that
            cannot be understood is left out.
        """
        ...

    def tagged_instances(self, tags: Mapping[str, str]) -> frozenset[InstanceId]:
        """Name the instances that carry all `tags`, whatever their state."""
        ...

    def infrastructure(self, vpc_ids: Collection[VpcId]) -> Infrastructure:
        """Read VPCs, subnets, security groups and route tables of the given VPCs.

        Returns:
            The answer with `described_at` left at 0: the caller knows the clock.
        """
        ...

    def limits(self, instance_types: Collection[str]) -> Mapping[str, Limits]:
        """Read what the named types can carry on their default card; an unknown type is missing from the answer."""
        ...

    def create_interface(  # noqa: PLR0913 - EC2's own parameters
        self,
        *,
        subnet_id: SubnetId,
        secondary_count: int,
        security_groups: Sequence[str],
        description: str,
        tags: Mapping[str, str],
        client_token: str,
        ipv6_prefix: bool = False,
        prefix_count: int = 0,
    ) -> Interface:
        """Create an interface; the same token with the same parameters answers the same interface.

        At most one of `secondary_count` and `prefix_count` (/28 prefixes) is above 0.
        """
        ...

    def attach_interface(
        self, interface_id: InterfaceId, instance_id: InstanceId, *, device_index: int, network_card: int
    ) -> str:
        """Attach to a network card at `device_index`; returns the attachment's id."""
        ...

    def set_delete_on_termination(self, interface_id: InterfaceId, attachment_id: str) -> None:
        """Have the interface deleted with its instance."""
        ...

    def assign_addresses(self, interface_id: InterfaceId, count: int) -> tuple[str, ...]:
        """Assign `count` more secondary addresses; returns the new ones, as EC2 confirmed them."""
        ...

    def assign_prefixes(self, interface_id: InterfaceId, count: int) -> tuple[str, ...]:
        """Assign `count` more /28 prefixes; returns the new ones (such as "10.0.1.16/28"), as EC2 confirmed them."""
        ...

    def unassign(self, interface_id: InterfaceId, addresses: Sequence[str], prefixes: Sequence[str]) -> None:
        """Give secondary addresses and /28 prefixes back, all or none; at least one."""
        ...

    def assign_ipv6_prefix(self, interface_id: InterfaceId) -> str:
        """Assign a /80 to an interface; returns it, as EC2 confirmed it."""
        ...

    def free_elastic_ips(self, tags: Mapping[str, str]) -> tuple[ElasticIp, ...]:
        """List the Elastic IPs that carry all `tags` and are not associated; none, and no call, without tags."""
        ...

    def associate_address(self, elastic_ip: ElasticIp, interface_id: InterfaceId, private_address: str) -> None:
        """Associate an Elastic IP with an address of an interface; EC2 refuses if either of both is associated."""
        ...

    def delete_interface(self, interface_id: InterfaceId) -> None:
        """Delete an unattached interface; one that is not there counts as done."""
        ...
