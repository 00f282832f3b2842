"""What `doctor` asks other systems, each in one or two round trips; asking changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from eni_tasks.model.network import InstanceId, InterfaceId, SubnetId, Value


class ClusterRights(Protocol):
    """What the API server serves, and what we may do there; raises ClusterUnavailable, ClusterRefused."""

    def serves(self) -> frozenset[str]:
        """Name the resources of cilium.io/v2, subresources as `ciliumnodes/status`; none if there is no such group."""
        ...

    def may(
        self, verb: str, resource: str, subresource: str = "", *, group: str = "cilium.io", namespace: str = ""
    ) -> tuple[bool, str]:
        """Ask whether we may do something to resources of an API group, and why (not); in all namespaces if ""."""
        ...

    def now(self) -> float | None:
        """The server's clock in whole seconds; None if it gives none."""
        ...


class Right(StrEnum):
    """EC2's answer about an action."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


class Permission(Value, frozen=True):
    """The answer for one action; `why` is EC2's text, or what is missing for asking."""

    action: str
    right: Right
    why: str = ""


class Sample(Value, frozen=True):
    """Real resources to ask about, since rights may depend on them; "" and () where none is known.

    The interface is one of ours: policies let us change only those that carry our tags.
    """

    tags: Mapping[str, str] = {}
    subnet_id: SubnetId = SubnetId("")
    security_groups: tuple[str, ...] = ()
    instance_id: InstanceId = InstanceId("")
    interface_id: InterfaceId = InterfaceId("")
    attachment_id: str = ""


class Ec2Rights(Protocol):
    """What EC2 permits us to do; raises Ec2Error when it does not answer at all, InvalidInput without a region."""

    def identity(self) -> str:
        """Who we are to AWS: the ARN."""
        ...

    def permission(self, action: str, sample: Sample) -> Permission:
        """Ask whether we may call an action on `sample`."""
        ...


class Workers(Protocol):
    """The workers that answer; raises StateUnavailable when the broker does not."""

    def queues(self) -> Mapping[str, tuple[str, ...]]:
        """Worker → the queues that it serves, of those that answered in time."""
        ...
