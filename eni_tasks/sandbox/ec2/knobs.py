"""Everything about this EC2 that a test or a curious person may turn."""

from __future__ import annotations

from typing import Any

import msgspec

MUTATIONS_LISTED = (
    "CreateNetworkInterface",
    "DeleteNetworkInterface",
    "ModifyNetworkInterfaceAttribute",
    "AssignPrivateIpAddresses",
    "UnassignPrivateIpAddresses",
)
MUTATIONS_UNLISTED = ("AttachNetworkInterface", "DetachNetworkInterface")
READS = (
    "DescribeVpcs",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeRouteTables",
    "DescribeInstances",
    "DescribeInstanceTypes",
    "DescribeNetworkInterfaces",
)
UNFILTERED_READS = ("DescribeInstances", "DescribeNetworkInterfaces", "DescribeSecurityGroups")
UNFILTERED = "/unfiltered"  # appended to the action of a read with neither filter nor page size


class Bucket(msgspec.Struct, frozen=True):
    """A token bucket: `size` calls at once, `refill_per_second` after that."""

    size: float
    refill_per_second: float


class Knobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How this EC2 behaves; the defaults answer at once and refuse only what limits refuse.

    `buckets` and `latency_seconds` are per action; latency also takes "*" for all other actions.
    `read_lag_seconds` is how far describes lag behind; `new_id_lag_seconds` is how long calls that
    name a new interface or instance say that it does not exist. `unpaginated_limit` is the number
    of interfaces above which they cannot be listed without filter or page size. `exhausted_subnets`
    have no free address, whatever their size.
    """

    buckets: dict[str, Bucket] = {}
    latency_seconds: dict[str, float] = {}
    denied_actions: tuple[str, ...] = ()
    exhausted_subnets: tuple[str, ...] = ()
    read_lag_seconds: float = 0.0
    new_id_lag_seconds: float = 0.0
    attach_seconds: float = 0.0
    detach_seconds: float = 0.0
    start_seconds: float = 0.0
    stop_seconds: float = 0.0
    terminate_seconds: float = 0.0
    terminated_shown_seconds: float = 3600.0
    unpaginated_limit: int = 1000
    interface_quota: int = 5000

    def changed(self, changes: dict[str, Any]) -> Knobs:
        """Returns the knobs with some turned.

        Args:
            changes: new values by name, as JSON has them.

        Raises:
            msgspec.ValidationError: an unknown name or a wrong type.
        """
        return msgspec.convert(msgspec.to_builtins(self) | msgspec.to_builtins(changes), Knobs)


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scripted fault, for calls number `skip` + 1 to `skip` + `times` (None: for ever) that it matches.

    `action` may be a pattern ("Describe*"). `resource` narrows it to calls that concern an instance,
    interface, subnet or attachment, named in the call or behind what is named. With `after` the call
    has its effect first: the answer is ambiguous. `drop` closes the connection instead of answering
    with `code`. With neither, the call goes through, late by `delay_seconds` (counted after the
    effect) and, if it is a read of interfaces, without those in `hides`.
    """

    action: str
    code: str = ""
    message: str = "scripted by the sandbox"
    status: int = 400
    skip: int = 0
    times: int | None = 1
    after: bool = False
    drop: bool = False
    delay_seconds: float = 0.0
    resource: str = ""
    hides: tuple[str, ...] = ()


def aws_default_buckets(factor: float = 1.0) -> dict[str, Bucket]:
    """Returns AWS's documented rates per action.

    Args:
        factor: scales size and refill, to see throttling in a small world.
    """
    sizes = dict.fromkeys(MUTATIONS_LISTED, (100, 5)) | dict.fromkeys(MUTATIONS_UNLISTED, (50, 5))
    sizes |= dict.fromkeys(READS, (100, 20)) | {action + UNFILTERED: (50, 10) for action in UNFILTERED_READS}
    return {action: Bucket(size * factor, refill * factor) for action, (size, refill) in sizes.items()}
