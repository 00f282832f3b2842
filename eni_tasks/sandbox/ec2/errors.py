"""EC2's errors: one exception, and the codes and texts that clients branch on.

The texts are EC2's own, because several causes share a code and differ in their text only.
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
    "elastic ip": ("InvalidAllocationID.NotFound", "The allocation ID '{}' does not exist"),
}


class Ec2Error(Refusal):
    """A call that EC2 refuses, ready to be sent.

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


def not_found(kind: str, identifier: str) -> Ec2Error:
    """Returns the error for an id that does not exist (or is not visible yet)."""
    code, text = NOT_FOUND[kind]
    return Ec2Error(code, text.format(identifier))


def invalid_value(message: str) -> Ec2Error:
    """Returns EC2's most general error for a parameter; only the text names the cause."""
    return Ec2Error("InvalidParameterValue", message)


def invalid_combination(message: str) -> Ec2Error:
    """Returns the error for parameters that exclude each other."""
    return Ec2Error("InvalidParameterCombination", message)


def missing(parameter: str) -> Ec2Error:
    """Returns the error for a request that lacks a parameter."""
    return Ec2Error("MissingParameter", f"The request must contain the parameter {parameter}")


def subnet_full() -> Ec2Error:
    """Returns the error for a subnet with too few free addresses."""
    text = "The specified subnet does not have enough free addresses to satisfy the request."
    return Ec2Error("InsufficientFreeAddressesInSubnet", text)


def no_free_block() -> Ec2Error:
    """Returns the error for a subnet with too few blocks that are free as a whole (aws/amazon-vpc-cni-k8s#1836)."""
    text = "The specified subnet does not have enough free cidr blocks to satisfy the request."
    return Ec2Error("InsufficientCidrBlocks", text)


def address_in_use(address: str) -> Ec2Error:
    """Returns the error for an address or prefix that was asked for by name and is not free."""
    return Ec2Error("InvalidIPAddress.InUse", f"Address {address} is in use.")


def throttled() -> Ec2Error:
    """Returns the error for a call above the rate of its action."""
    return Ec2Error("RequestLimitExceeded", "Request limit exceeded.", 503)


def unauthorized() -> Ec2Error:
    """Returns the error for missing rights."""
    return Ec2Error("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)


def dry_run() -> Ec2Error:
    """Returns the error which means that a dry run would have been allowed."""
    return Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
