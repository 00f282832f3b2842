"""What the planner answers: the next action or none, and the reasons in words."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import NamedTuple

from eni_tasks.model.network import InstanceId, InterfaceId, SubnetId, Value
from eni_tasks.model.node import ReleaseMemory


class Urgency(IntEnum):
    """How pressing a node's work is; lower comes first. Kept in Redis, never in Celery."""

    EMPTY = 0  # no free address left
    DEFICIT = 1
    RELEASE = 2
    CLEANUP = 3


class Reason(StrEnum):
    """Why there is (or is not) something to do; constant words for logs, metrics and tests."""

    AT_SIZE = "at-size"
    EXCESS = "excess"
    OUTLIVES_INSTANCE = "interface-would-outlive-instance"
    DEFICIT = "deficit"
    IPV6 = "ipv6-prefix-missing"
    STATIC_ADDRESS = "static-address-missing"
    NO_INSTANCE_ID = "no-instance-id"
    INSTANCE_TAKEN = "instance-of-another-node"
    NOT_READ = "instance-not-read"
    NO_INTERFACES = "instance-has-no-interfaces"
    LIMITS_UNKNOWN = "limits-unknown"
    AT_CAPACITY = "at-capacity"
    INTERFACE_REFUSED = "interface-refused"
    FACTS_TOO_OLD = "facts-too-old"
    NO_SUBNET = "no-subnet-with-room"
    SUBNET_NOT_LISTED = "subnet-not-listed"
    NO_SELECTED_SUBNET = "subnet-selector-matches-nothing"
    NO_SECURITY_GROUP = "no-security-group"
    SECURITY_GROUP_NOT_ALLOWED = "security-group-not-allowed"
    NOT_RUNNING = "instance-not-running"
    DELETING = "node-is-being-deleted"
    IGNORED = "node-is-ignored"


class Blocked(NamedTuple):
    """A step that is not possible now; `sentence` tells a person why and what to do."""

    reason: Reason
    sentence: str


def utc(seconds: float) -> str:
    """Give a time as sentences do: absolute, since one that changed with each look would be written each time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Figures(Value, frozen=True):
    """The node's figures: addresses on eligible interfaces, and what follows from them.

    `capacity` is the most addresses the node can ever hold; None while unknown. `remaining_interfaces` can
    take addresses: attached ones with room, and `free_slots` (negative if more hang there than allowed).
    """

    available: int = 0
    used: int = 0
    needed: int = 0
    excess: int = 0
    capacity: int | None = None
    interfaces: int = 0
    remaining_interfaces: int = 0
    free_slots: int = 0


class Assign(Value, frozen=True, tag="assign"):
    """Assign more to an interface that is attached: `count` secondary addresses, or `prefix_count` /28 prefixes.

    Exactly one of both is above 0. With `fallback` the interface gets single addresses for lack of a prefix.
    """

    interface_id: InterfaceId
    subnet_id: SubnetId
    count: int = 0
    prefix_count: int = 0
    fallback: bool = False


class CreateInterface(Value, frozen=True, tag="create"):
    """Create an interface with `secondary_count` addresses or `prefix_count` /28 prefixes, and attach it.

    The primary address comes on top. With `ipv6_prefix` it also gets a /80. With `fallback` it gets single addresses
    for lack of a prefix.
    """

    instance_id: InstanceId
    subnet_id: SubnetId
    secondary_count: int
    security_groups: tuple[str, ...]
    device_index: int
    description: str
    tags: dict[str, str]
    delete_on_termination: bool
    network_card: int = 0
    ipv6_prefix: bool = False
    prefix_count: int = 0
    fallback: bool = False


class AssignIpv6Prefix(Value, frozen=True, tag="assign-ipv6-prefix"):
    """Assign a /80 to an interface that is attached."""

    interface_id: InterfaceId


class AssociateAddress(Value, frozen=True, tag="associate-address"):
    """Associate a free Elastic IP that carries all `tags` with the primary address of an interface."""

    interface_id: InterfaceId
    primary_address: str
    tags: dict[str, str]


class SetDeleteOnTermination(Value, frozen=True, tag="set-delete-on-termination"):
    """Set delete-on-termination of an interface of ours, which would outlive its instance without."""

    interface_id: InterfaceId
    attachment_id: str


class Unassign(Value, frozen=True, tag="unassign"):
    """Give addresses and prefixes of one interface back; the agent has agreed to each of their addresses."""

    interface_id: InterfaceId
    subnet_id: SubnetId
    addresses: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


Action = Assign | CreateInterface | SetDeleteOnTermination | Unassign | AssignIpv6Prefix | AssociateAddress


class Plan(Value, frozen=True):
    """The next action for one node, or none.

    `explanation` are sentences for people, in the order in which they were decided; `reason` is the
    constant word for the outcome. `blocked` is true when something is needed that cannot be done:
    the explanation's last sentence then says why and what to do. `troubles` are sentences about what can't be done
    beside the pool (IPv6, static address). `release` is what the node's memory of releases is to be from now on; None:
    nothing could be decided, so it stays.
    """

    action: Action | None
    reason: Reason
    explanation: tuple[str, ...]
    figures: Figures
    urgency: Urgency = Urgency.DEFICIT
    blocked: bool = False
    release: ReleaseMemory | None = None
    troubles: tuple[str, ...] = ()

    @property
    def trouble(self) -> str:
        """What people should know, in one text; "" if all is well or under way."""
        return " ".join((*self.explanation[-1:], *self.troubles) if self.blocked else self.troubles)
