"""EC2's refusals: one exception, and the codes and texts that clients branch on.

The texts are EC2's own (several codes are told apart by text only), so they stay in one place.
"""

from __future__ import annotations

from eni_tasks.sandbox.serving import Refusal

NOT_FOUND = {
    "interface": ("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '{}' does not exist"),
    "instance": ("InvalidInstanceID.NotFound", "The instance ID '{}' does not exist"),
    "subnet": ("InvalidSubnetID.NotFound", "The subnet ID '{}' does not exist"),
    "vpc": ("InvalidVpcID.NotFound", "The vpc ID '{}' does not exist"),
    "group": ("InvalidSecurityGroupID.NotFound", "The security group '{}' does not exist"),
    "route table": ("InvalidRouteTableID.NotFound", "The routeTable ID '{}' does not exist"),
    "attachment": ("InvalidAttachmentID.NotFound", "The attachment ID '{}' does not exist"),
}


class Refused(Refusal):
    """A call that was refused, ready to be sent.

    Args:
        code: EC2's error code.
        message: EC2's text.
        status: HTTP status.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class Dropped(Exception):
    """The connection is to be closed without an answer."""


def not_found(kind: str, identifier: str) -> Refused:
    """Returns the refusal of an id that does not exist (or is not visible yet)."""
    code, text = NOT_FOUND[kind]
    return Refused(code, text.format(identifier))


def invalid_value(message: str) -> Refused:
    """Returns EC2's catch-all refusal of a parameter, told apart by its text."""
    return Refused("InvalidParameterValue", message)


def missing(parameter: str) -> Refused:
    """Returns the refusal of a request that lacks a parameter."""
    return Refused("MissingParameter", f"The request must contain the parameter {parameter}")


def subnet_full() -> Refused:
    """Returns the refusal for want of addresses."""
    text = "The specified subnet does not have enough free addresses to satisfy the request."
    return Refused("InsufficientFreeAddressesInSubnet", text)


def throttled() -> Refused:
    """Returns the refusal of a call above the rate of its action."""
    return Refused("RequestLimitExceeded", "Request limit exceeded.", 503)


def unauthorized() -> Refused:
    """Returns the refusal for missing rights."""
    return Refused("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)


def dry_run() -> Refused:
    """Returns the refusal that means that a call would have been allowed."""
    return Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
