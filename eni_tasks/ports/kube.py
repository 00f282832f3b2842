"""CiliumNode objects, as the use cases see them.

An object that can't be understood is given like any other, with its `problem`: it exists, and must not be
taken for deleted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Protocol

from eni_tasks.errors import TransientError
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node_event import NodeEvent

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


class EventWriter(Protocol):
    """Telling people of nodes; raises ClusterUnavailable, ClusterRefused, ConflictError, NodeGone."""

    def write(self, event: NodeEvent) -> None:
        """Write a Kubernetes Event, or raise the count of the one that says the same."""
        ...


class HistoryGone(TransientError):
    """The API server has forgotten the version that was asked for: list again."""


class Page(Value, frozen=True):
    """A part of the list; `resource_version` is the same in all parts."""

    objects: tuple[CiliumNode, ...]
    resource_version: str


class Changes(Value, frozen=True):
    """What a watch sent at once: objects as they are now, and (name, uid) of those that were deleted.

    `resource_version` is where the next watch continues once this has been taken in.
    """

    resource_version: str
    changed: tuple[CiliumNode, ...] = ()
    gone: tuple[tuple[NodeName, str], ...] = ()


class NodeFeed(Protocol):
    """All objects, then what happens to them; raises HistoryGone, ClusterUnavailable, ClusterRefused."""

    def pages(self) -> Iterator[Page]:
        """Read all objects as of one version, in pages."""
        ...

    def version(self) -> str:
        """The version that the API server is at."""
        ...

    def changes(self, resource_version: str, timeout_seconds: int) -> Generator[Changes, None, None]:
        """Follow what comes after a version; ends by itself after about the given time, or a long silence.

        The first, empty one says that `interrupt` can reach the watch from now on.
        """
        ...

    def interrupt(self) -> None:
        """End the present `changes` soon, from another thread."""
        ...
