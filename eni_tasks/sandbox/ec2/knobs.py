"""The settings of this EC2 that tests and people change: rates, lags, rights, odd answers and scripted faults."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from eni_tasks.sandbox.ec2.errors import throttled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from eni_tasks.sandbox.ec2.query import Query

MUTATIONS_LISTED = (
    "CreateNetworkInterface",
    "DeleteNetworkInterface",
    "ModifyNetworkInterfaceAttribute",
    "AssignPrivateIpAddresses",
    "UnassignPrivateIpAddresses",
)
MUTATIONS_UNLISTED = ("AttachNetworkInterface", "DetachNetworkInterface", "AssignIpv6Addresses", "AssociateAddress")
READS = (
    "DescribeVpcs",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeRouteTables",
    "DescribeInstances",
    "DescribeInstanceTypes",
    "DescribeNetworkInterfaces",
    "DescribeAddresses",
)
UNFILTERED_READS = ("DescribeInstances", "DescribeNetworkInterfaces", "DescribeSecurityGroups")
UNFILTERED = "/unfiltered"  # appended to the action of a read with neither filter nor page size
OTHERS = "*"  # in a table by action: all actions that it does not name


class Bucket(msgspec.Struct, frozen=True):
    """A token bucket: `size` calls at once, `refill_per_second` after that."""

    size: float
    refill_per_second: float


class Knobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How this EC2 behaves; the defaults answer at once and refuse only what limits refuse.

    Attributes:
        buckets: rates by action.
        latency_seconds: how long a call takes, by action; "*" names all other actions.
        denied_actions: patterns of actions that are not authorized.
        exhausted_subnets: have no free IPv4 address, whatever their size.
        read_lag_seconds: how far describes lag behind: all of them, or by action as for the latency. It counts
            for what is written from now on.
        new_id_lag_seconds: how long calls that name a new interface or instance answer that it does not exist.
        unlisted: ids of any kind that describes do not show, although they exist.
        malformed: what is wrong in describes of an item: by its id (or the name of an instance type), the XML
            elements that are missing (null) or hold another text.
        page_limit: the most items that a page is made of, whatever the client asks for. Filters apply to the
            items of a page, so pages may be short or empty and have successors.
        unpaginated_limit: the number of interfaces above which a request needs a filter or a page size.
        interface_quota: the account's quota of interfaces.
    """

    buckets: dict[str, Bucket] = {}
    latency_seconds: dict[str, float] = {}
    denied_actions: tuple[str, ...] = ()
    exhausted_subnets: tuple[str, ...] = ()
    read_lag_seconds: float | dict[str, float] = 0.0
    new_id_lag_seconds: float = 0.0
    unlisted: tuple[str, ...] = ()
    malformed: dict[str, dict[str, str | None]] = {}
    page_limit: int | None = None
    attach_seconds: float = 0.0
    detach_seconds: float = 0.0
    start_seconds: float = 0.0
    stop_seconds: float = 0.0
    terminate_seconds: float = 0.0
    terminated_shown_seconds: float = 3600.0
    unpaginated_limit: int = 1000
    interface_quota: int = 5000

    def changed(self, changes: dict[str, Any]) -> Knobs:
        """Returns the knobs with some changed.

        Args:
            changes: new values by name, as JSON has them.

        Raises:
            ValueError: an unknown name, a wrong type or a page limit below 1.
        """
        knobs = msgspec.convert(msgspec.to_builtins(self) | msgspec.to_builtins(changes), Knobs)
        if knobs.page_limit is not None and knobs.page_limit < 1:
            raise ValueError(f"page_limit is {knobs.page_limit}; it must be at least 1")
        return knobs

    def latency(self, action: str) -> float:
        """Returns how long a call takes, in seconds."""
        return _by_action(self.latency_seconds, action)

    def read_lag(self, action: str) -> float:
        """Returns how far a describe lags behind, in seconds."""
        lag = self.read_lag_seconds
        return _by_action(lag, action) if isinstance(lag, dict) else lag

    def denies(self, action: str) -> bool:
        """Whether an action is not authorized."""
        return any(fnmatchcase(action, denied) for denied in self.denied_actions)


def _by_action(table: dict[str, float], action: str) -> float:
    return table.get(action, table.get(OTHERS, 0.0))


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scripted fault, for calls number `skip` + 1 to `skip` + `times` (None: without end) that it matches.

    `action` may be a pattern ("Describe*"). `resource` narrows it to calls that concern an instance,
    interface, subnet or attachment, named in the call or behind what is named. `page` narrows it to reads of
    that page of a listing (1 is the first). With `after` the call has its effect first: the answer is
    ambiguous. `drop` closes the connection instead of answering with `code`. With neither, the call goes
    through, late by `delay_seconds` (counted after the effect) and, if it is a read, without the ids in
    `hides`.
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
    page: int | None = None
    hides: tuple[str, ...] = ()

    def matches(self, action: str, query: Query, concerned: Collection[str]) -> bool:
        """Whether a call is one that this fault counts.

        Args:
            action: of the call.
            query: its parameters.
            concerned: the ids that it names, and those behind them.
        """
        return (
            fnmatchcase(action, self.action)
            and (not self.resource or self.resource in concerned)
            and self.page in (None, query.page_number())
        )


class Faults:
    """The scripted faults that are not used up, in the order in which they were scripted."""

    def __init__(self) -> None:
        self._pending: list[tuple[Fault, int]] = []  # with the number of calls matched so far

    def add(self, faults: Iterable[Fault]) -> None:
        """Script faults, behind the present ones."""
        self._pending += [(fault, 0) for fault in faults]

    def clear(self) -> None:
        """Forget all faults."""
        self._pending.clear()

    def pending(self) -> list[Fault]:
        """Returns the faults that are not used up."""
        return [fault for fault, _ in self._pending]

    def take(self, action: str, query: Query, concerned: Collection[str]) -> Fault | None:
        """Returns the first fault that is due for a call; those scripted after it do not count the call."""
        due: Fault | None = None
        left: list[tuple[Fault, int]] = []
        for fault, matched in self._pending:
            count = matched
            if due is None and fault.matches(action, query, concerned):
                count += 1
                if count > fault.skip:
                    due = fault
            if fault.times is None or count < fault.skip + fault.times:
                left.append((fault, count))
        self._pending = left
        return due


class Throttle:
    """One token bucket per action, as the knobs size them."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}  # by bucket: tokens, and when that was

    def acquire(self, buckets: dict[str, Bucket], action: str, query: Query, now: float) -> None:
        """Take a token.

        Raises:
            Ec2Error: there is none.
        """
        unfiltered = action + UNFILTERED
        name = unfiltered if unfiltered in buckets and not query.narrowed() else action
        bucket = buckets.get(name)
        if bucket is None:
            return
        tokens, since = self._left.get(name, (bucket.size, now))
        tokens = min(bucket.size, tokens + (now - since) * bucket.refill_per_second)
        if tokens < 1:
            raise throttled()
        self._left[name] = (tokens - 1, now)


def aws_default_buckets(factor: float = 1.0) -> dict[str, Bucket]:
    """Returns AWS's documented rates per action.

    Args:
        factor: scales size and refill, to see throttling in a small world.
    """
    sizes = dict.fromkeys(MUTATIONS_LISTED, (100, 5)) | dict.fromkeys(MUTATIONS_UNLISTED, (50, 5))
    sizes |= dict.fromkeys(READS, (100, 20)) | {action + UNFILTERED: (50, 10) for action in UNFILTERED_READS}
    return {action: Bucket(size * factor, refill * factor) for action, (size, refill) in sizes.items()}
