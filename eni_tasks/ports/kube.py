"""CiliumNode objects and pods, as the use cases see them.

An object that can't be understood is given like any other, with its `problem`: it exists, and must not be
taken for deleted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from eni_tasks.errors import TransientError
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node_event import NodeEvent

T = TypeVar("T")

PatchOps = Sequence[dict[str, Any]]


class CiliumNodes(Protocol):
    """Reading one object and patching it; raises NodeGone, ConflictError, ClusterUnavailable, ClusterRefused."""

    def get(self, name: NodeName) -> CiliumNode:
        """Read one object."""
        ...

    def patch_status(self, name: NodeName, operations: PatchOps) -> CiliumNode:
        """Apply JSON Patch operations to the status subresource; returns the object after it."""
        ...

    def patch_spec(self, name: NodeName, operations: PatchOps) -> CiliumNode:
        """Apply JSON Patch operations to the object itself; returns the object after it."""
        ...


class NodeUse(Value, frozen=True):
    """What the API server knows of a node's pods and of its health, beside its CiliumNode.

    `ready_since` is when its Node became ready, in seconds since 1970; None if it is not ready, or not there.
    `addresses` are those of all pods on it that have not ended, both families, and those of pods with host network.
    """

    ready_since: float | None
    addresses: frozenset[str]


class NodeUses(Protocol):
    """Reads a node's use afresh; raises ClusterUnavailable, ClusterRefused."""

    def read(self, name: NodeName) -> NodeUse:
        """Read the pods of one node and its health."""
        ...


class EventWriter(Protocol):
    """Telling people of nodes; raises ClusterUnavailable, ClusterRefused, ConflictError, NodeGone."""

    def write(self, event: NodeEvent) -> None:
        """Write a Kubernetes Event, or raise the count of the one that says the same."""
        ...


class HistoryGone(TransientError):
    """The API server has forgotten the version that was asked for: list again."""


class Page(Value, Generic[T], frozen=True):
    """A part of the list; `resource_version` is the same in all parts."""

    objects: tuple[T, ...]
    resource_version: str


class Changes(Value, Generic[T], frozen=True):
    """What a watch sent at once: objects as they are now, and (name, uid) of those that were deleted.

    `resource_version` is where the next watch continues once this has been taken in.
    """

    resource_version: str
    changed: tuple[T, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()


class Feed(Protocol[T]):
    """All objects, then what happens to them; raises HistoryGone, ClusterUnavailable, ClusterRefused."""

    def pages(self) -> Iterator[Page[T]]:
        """Read all objects as of one version, in pages."""
        ...

    def version(self) -> str:
        """The version that the API server is at."""
        ...

    def changes(self, resource_version: str, timeout_seconds: int) -> Generator[Changes[T], None, None]:
        """Follow what comes after a version; ends by itself after about the given time, or a long silence.

        The first, empty one says that `interrupt` can reach the watch from now on.
        """
        ...

    def interrupt(self) -> None:
        """End the present `changes` soon, from another thread."""
        ...
