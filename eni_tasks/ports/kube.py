"""CiliumNode objects, as the use cases see them.

Objects travel as the API's own JSON (`dict[str, Any]`), trimmed to what we read and write; their
meaning is given by `eni_tasks.domain.cilium_node`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from eni_tasks.model.network import NodeName

KubeObject = dict[str, Any]
PatchOps = Sequence[dict[str, Any]]


class CiliumNodes(Protocol):
    """Reading one object and patching it; raises NodeGone, ConflictError, ClusterUnavailable, ClusterRefused."""

    def get(self, name: NodeName) -> KubeObject:
        """Read one object, trimmed as the watcher stores it."""
        ...

    def patch_status(self, name: NodeName, operations: PatchOps) -> KubeObject:
        """Apply JSON Patch operations to the status subresource; returns the object after it, trimmed."""
        ...

    def patch_spec(self, name: NodeName, operations: PatchOps) -> KubeObject:
        """Apply JSON Patch operations to the object itself; returns the object after it, trimmed."""
        ...
