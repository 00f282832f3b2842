"""What we may do at EC2, without doing it: `ports.doctor.Ec2Rights`.

EC2 answers a dry run with DryRunOperation where the real call would be let through. One action knows
no dry run, AssignPrivateIpAddresses: that one is asked for an interface that cannot exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from eni_tasks.adapters.ec2.calls import Ec2Calls
from eni_tasks.adapters.ec2.client import ClientOptions, Ec2Clients
from eni_tasks.adapters.ec2.errors import CALL_ERRORS, translate
from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.ports.doctor import Permission, Right, Sample

NOT_AN_INTERFACE = "eni-00000000000000000"
DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
WHY_LONGEST = 300  # EC2 appends kilobytes of encoded text to a denial

Parameters = dict[str, Any]


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


# The parameters of each dry run, and what must be known to make them.
MUTATIONS: dict[str, tuple[Callable[[Sample], Parameters], tuple[str, ...]]] = {
    "CreateNetworkInterface": (_create, ("subnet_id", "security_groups")),
    "AttachNetworkInterface": (_attach, ("interface_id", "instance_id")),
    "ModifyNetworkInterfaceAttribute": (_modify, ("interface_id", "attachment_id")),
    "DetachNetworkInterface": (lambda sample: {"AttachmentId": sample.attachment_id}, ("attachment_id",)),
    "DeleteNetworkInterface": (lambda sample: {"NetworkInterfaceId": sample.interface_id}, ("interface_id",)),
}
NO_DRY_RUN = "AssignPrivateIpAddresses"


class Ec2DryRuns:
    """Asks EC2 what it would let us do.

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
        build, needed = MUTATIONS.get(action, (lambda _: {}, ()))
        if missing := [name for name in needed if not getattr(sample, name)]:
            why = f"there is nothing to ask about yet: {', '.join(missing)} of an interface of ours"
            return Permission(action=action, right=Right.UNKNOWN, why=why)
        try:
            if action == NO_DRY_RUN:
                self._calls.mutate(action, NetworkInterfaceId=NOT_AN_INTERFACE, SecondaryPrivateIpAddressCount=1)
            else:
                self._calls.mutate(action, DryRun=True, **build(sample))
        except Ec2Error as error:
            return _judged(action, error)
        return Permission(action=action, right=Right.ALLOWED)


def _judged(action: str, error: Ec2Error) -> Permission:
    why = f"{error.code}: {error.message}"[:WHY_LONGEST]
    if error.code in DENIED:
        return Permission(action=action, right=Right.DENIED, why=why)
    if error.reaction is Ec2Reaction.ACCOUNT_WIDE or not isinstance(error.__cause__, ClientError):
        raise error  # wrong credentials, or no answer at all: no other action will fare better
    nothing_there = action == NO_DRY_RUN and error.code == "InvalidNetworkInterfaceID.NotFound"
    if error.code == "DryRunOperation" or nothing_there:
        return Permission(action=action, right=Right.ALLOWED)
    return Permission(action=action, right=Right.UNKNOWN, why=why)
