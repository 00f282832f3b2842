"""The changing half of the EC2 port: one request each, and an answer that is checked.

An answer that lacks what it must have is ambiguous, like no answer: the change has most likely happened,
so the caller reads before it does anything else. The order of steps is the services' business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.adapters.ec2.errors import malformed
from eni_tasks.adapters.ec2.reads import interface_in
from eni_tasks.domain.prefixes import is_prefix
from eni_tasks.errors import Ec2Error, Ec2Reaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eni_tasks.adapters.ec2.client import Ec2Calls
    from eni_tasks.model.network import ElasticIp, InstanceId, Interface, InterfaceId, SubnetId

_INTERFACE_GONE = "InvalidNetworkInterfaceID.NotFound"


class Ec2Mutations:
    """Mutations for `BotoEc2`, which brings the attribute."""

    _calls: Ec2Calls

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
        """Create an interface; see the port."""
        action = "CreateNetworkInterface"
        if not security_groups:
            raise Ec2Error(
                action,
                "NoSecurityGroups",
                f"not sent: without groups the interface in {subnet_id} would get the VPC's default group",
                Ec2Reaction.OUR_FAULT,
            )
        # EC2 refuses an empty list of tags and a count of zero.
        wanted: dict[str, object] = {"SecondaryPrivateIpAddressCount": secondary_count} if secondary_count else {}
        if prefix_count:
            wanted["Ipv4PrefixCount"] = prefix_count
        if ipv6_prefix:
            wanted["Ipv6PrefixCount"] = 1
        if tags:
            named = [{"Key": key, "Value": value} for key, value in tags.items()]
            wanted["TagSpecifications"] = [{"ResourceType": "network-interface", "Tags": named}]
        answer = self._calls.mutate(
            action,
            SubnetId=subnet_id,
            Groups=list(security_groups),
            Description=description,
            ClientToken=client_token,
            **wanted,
        )
        if "NetworkInterface" not in answer:
            raise malformed(action, f"for {subnet_id} names no interface", mutation=True)
        interface = interface_in(action, answer["NetworkInterface"], mutation=True)
        if not interface.primary_address:
            raise malformed(action, f"shows {interface.id} without a private IPv4 address", mutation=True)
        return interface

    def attach_interface(
        self, interface_id: InterfaceId, instance_id: InstanceId, *, device_index: int, network_card: int
    ) -> str:
        """Attach to a network card at `device_index`; see the port."""
        # Without the card EC2 takes indexes of another card for taken on types with several.
        answer = self._calls.mutate(
            "AttachNetworkInterface",
            NetworkInterfaceId=interface_id,
            InstanceId=instance_id,
            DeviceIndex=device_index,
            NetworkCardIndex=network_card,
        )
        attachment_id = answer.get("AttachmentId")
        if not attachment_id:
            what = f"for {interface_id} on {instance_id} names no attachment"
            raise malformed("AttachNetworkInterface", what, mutation=True)
        return str(attachment_id)

    def set_delete_on_termination(self, interface_id: InterfaceId, attachment_id: str) -> None:
        """Have the interface deleted with its instance; see the port."""
        self._calls.mutate(
            "ModifyNetworkInterfaceAttribute",
            NetworkInterfaceId=interface_id,
            Attachment={"AttachmentId": attachment_id, "DeleteOnTermination": True},
        )

    def assign_addresses(self, interface_id: InterfaceId, count: int) -> tuple[str, ...]:
        """Assign `count` more secondary addresses; see the port."""
        action = "AssignPrivateIpAddresses"
        answer = self._calls.mutate(action, NetworkInterfaceId=interface_id, SecondaryPrivateIpAddressCount=count)
        assigned = [given.get("PrivateIpAddress") for given in answer.get("AssignedPrivateIpAddresses", ())]
        addresses = tuple(str(address) for address in assigned if address)
        if len(addresses) != count:
            raise malformed(action, f"for {interface_id} names {len(addresses)} addresses, not {count}", mutation=True)
        return addresses

    def assign_prefixes(self, interface_id: InterfaceId, count: int) -> tuple[str, ...]:
        """Assign `count` more /28 prefixes; see the port."""
        action = "AssignPrivateIpAddresses"
        answer = self._calls.mutate(action, NetworkInterfaceId=interface_id, Ipv4PrefixCount=count)
        assigned = [given.get("Ipv4Prefix") for given in answer.get("AssignedIpv4Prefixes", ())]
        prefixes = tuple(str(prefix) for prefix in assigned if prefix)
        if len(prefixes) != count or not all(map(is_prefix, prefixes)):
            named = ", ".join(prefixes) or "none"
            raise malformed(action, f"for {interface_id} names as prefixes {named}, not {count}", mutation=True)
        return prefixes

    def unassign(self, interface_id: InterfaceId, addresses: Sequence[str], prefixes: Sequence[str]) -> None:
        """Give secondary addresses and /28 prefixes back, all or none; see the port."""
        # EC2 refuses an empty list.
        named = {"PrivateIpAddresses": list(addresses), "Ipv4Prefixes": list(prefixes)}
        given = {field: values for field, values in named.items() if values}
        self._calls.mutate("UnassignPrivateIpAddresses", NetworkInterfaceId=interface_id, **given)

    def assign_ipv6_prefix(self, interface_id: InterfaceId) -> str:
        """Assign a /80 to an interface; see the port."""
        action = "AssignIpv6Addresses"
        answer = self._calls.mutate(action, NetworkInterfaceId=interface_id, Ipv6PrefixCount=1)
        prefixes = [str(prefix) for prefix in answer.get("AssignedIpv6Prefixes", ()) if prefix]
        if len(prefixes) != 1:
            raise malformed(action, f"for {interface_id} names {len(prefixes)} prefixes, not 1", mutation=True)
        return prefixes[0]

    def associate_address(self, elastic_ip: ElasticIp, interface_id: InterfaceId, private_address: str) -> None:
        """Associate an Elastic IP with an address of an interface; see the port."""
        self._calls.mutate(
            "AssociateAddress",
            AllocationId=elastic_ip.id,
            NetworkInterfaceId=interface_id,
            PrivateIpAddress=private_address,
            # Else EC2 would take it from another node that was faster.
            AllowReassociation=False,
        )

    def delete_interface(self, interface_id: InterfaceId) -> None:
        """Delete an unattached interface; see the port."""
        try:
            self._calls.mutate("DeleteNetworkInterface", NetworkInterfaceId=interface_id)
        except Ec2Error as error:
            if error.code != _INTERFACE_GONE:
                raise
