"""What EC2 permits us to do, asked without doing it: `ports.doctor.Ec2Rights`.

EC2 answers a dry run with DryRunOperation where the real call would be permitted. Some mutations are asked about an
interface that cannot exist: AssignPrivateIpAddresses, UnassignPrivateIpAddresses and AssignIpv6Addresses, which have no
DryRun parameter, and DeleteNetworkInterface and AssociateAddress, so that a server or proxy that ignores DryRun changes
nothing. For those, EC2's answer that there is no such interface (or Elastic IP) means that the rights were checked and
suffice.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from eni_tasks.adapters.ec2.client import ClientOptions, Ec2Calls, Ec2Clients
from eni_tasks.adapters.ec2.errors import CALL_ERRORS, translate
from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.ec2_actions import MUTATIONS, Mutation, Scope
from eni_tasks.ports.doctor import Permission, Right, Sample

NOT_AN_INTERFACE = "eni-00000000000000000"
DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
REASON_CHARACTERS = 300  # EC2 appends kilobytes of encoded text to a denial
NOT_AN_ADDRESS = "192.0.2.1"
NOT_AN_ELASTIC_IP = "eipalloc-00000000000000000"
NOT_THERE = ("InvalidNetworkInterfaceID.NotFound", "InvalidAllocationID.NotFound")
NO_DRY_RUN = frozenset({"AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "AssignIpv6Addresses"})

Parameters = dict[str, Any]

_MUTATIONS = {mutation.name: mutation for mutation in MUTATIONS}


def _create(sample: Sample) -> Parameters:
    tags = [{"Key": key, "Value": value} for key, value in sample.tags.items()]
    return {
        "SubnetId": sample.subnet_id,
        "Groups": list(sample.security_groups),
        "TagSpecifications": [{"ResourceType": "network-interface", "Tags": tags}],
    }


def _attach(sample: Sample) -> Parameters:
    return {
        "NetworkInterfaceId": sample.interface_id,
        "InstanceId": sample.instance_id,
        "DeviceIndex": 1,
        "NetworkCardIndex": 0,
    }


def _modify(sample: Sample) -> Parameters:
    attachment = {"AttachmentId": sample.attachment_id, "DeleteOnTermination": True}
    return {"NetworkInterfaceId": sample.interface_id, "Attachment": attachment}


def _assign(_: Sample) -> Parameters:
    return {"NetworkInterfaceId": NOT_AN_INTERFACE, "SecondaryPrivateIpAddressCount": 1}


def _unassign(_: Sample) -> Parameters:
    return {"NetworkInterfaceId": NOT_AN_INTERFACE, "PrivateIpAddresses": [NOT_AN_ADDRESS]}


def _assign_ipv6(_: Sample) -> Parameters:
    return {"NetworkInterfaceId": NOT_AN_INTERFACE, "Ipv6PrefixCount": 1}


def _associate(_: Sample) -> Parameters:
    return {"NetworkInterfaceId": NOT_AN_INTERFACE, "AllocationId": NOT_AN_ELASTIC_IP}


def _delete(_: Sample) -> Parameters:
    return {"NetworkInterfaceId": NOT_AN_INTERFACE}


# The parameters of each mutation; a read takes none.
_PARAMETERS: dict[str, Callable[[Sample], Parameters]] = {
    "CreateNetworkInterface": _create,
    "AttachNetworkInterface": _attach,
    "ModifyNetworkInterfaceAttribute": _modify,
    "AssignPrivateIpAddresses": _assign,
    "UnassignPrivateIpAddresses": _unassign,
    "DeleteNetworkInterface": _delete,
    "AssignIpv6Addresses": _assign_ipv6,
    "AssociateAddress": _associate,
}


class Ec2DryRuns:
    """Asks EC2 what it permits us to do.

    Args:
        options: time-outs.
    """

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._calls = Ec2Calls(Ec2Clients(options), lambda *_: None)

    def identity(self) -> str:
        """See the port."""
        action = "GetCallerIdentity"
        config = Config(
            connect_timeout=self._options.connect_timeout_seconds,
            read_timeout=self._options.read_timeout_seconds,
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        try:
            session = boto3.session.Session(region_name=os.environ.get("AWS_REGION") or None)
            return str(session.client("sts", config=config).get_caller_identity()["Arn"])
        except CALL_ERRORS as error:
            raise translate(action, error, mutation=False) from error

    def permission(self, action: str, sample: Sample) -> Permission:
        """See the port."""
        mutation = _MUTATIONS.get(action)
        if mutation and not all(getattr(sample, name) for name in mutation.asked_of):
            why = "Unknown: EC2 can only be asked about an interface of ours, and there is none yet"
            return Permission(action=action, right=Right.UNKNOWN, why=why)
        parameters = _PARAMETERS[action](sample) if mutation else {}
        if action not in NO_DRY_RUN:
            parameters["DryRun"] = True
        try:
            self._calls.mutate(action, **parameters)
        except Ec2Error as error:
            return _judged(action, mutation, error)
        return Permission(action=action, right=Right.ALLOWED)


def _judged(action: str, mutation: Mutation | None, error: Ec2Error) -> Permission:
    why = f"{error.code}: {error.message}"[:REASON_CHARACTERS]
    of_no_interface = mutation is not None and not mutation.asked_of
    if error.code in DENIED:
        if of_no_interface and mutation and Scope.OURS in mutation.touches.values() and "explicit deny" not in why:
            # An interface that does not exist has no tags, so the chart's policy may deny it although it is complete.
            why += " (EC2 was asked about an interface that does not exist; a condition on tags denies that too)"
            return Permission(action=action, right=Right.UNKNOWN, why=why)
        return Permission(action=action, right=Right.DENIED, why=why)
    if error.reaction is Ec2Reaction.ACCOUNT_WIDE or not isinstance(error.__cause__, ClientError):
        raise error  # wrong credentials, or no answer at all: no other action will fare better
    if error.code == "DryRunOperation" or (of_no_interface and error.code in NOT_THERE):
        return Permission(action=action, right=Right.ALLOWED)
    return Permission(action=action, right=Right.UNKNOWN, why=why)
