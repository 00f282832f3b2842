"""CiliumNodes as they travel: paths, and the JSON trimmed while it is parsed.

What is not named here (managed fields, labels, the health endpoints) is skipped by the parser and never
becomes an object, which is most of the cost of a large list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from eni_tasks.domain.cilium_node import IGNORE_ANNOTATION
from eni_tasks.errors import NodeGone

if TYPE_CHECKING:
    from eni_tasks.ports.kube import KubeObject

NODES_PATH = "/apis/cilium.io/v2/ciliumnodes"
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | UnsetType | None = UNSET
    annotations: dict[str, Any] | None = None


class _Spec(msgspec.Struct, rename="kebab"):
    instance_id: Any = UNSET
    eni: Any = UNSET
    ipam: Any = UNSET


class _Status(msgspec.Struct):
    eni: Any = UNSET
    ipam: Any = UNSET


class TrimmedNode(msgspec.Struct):
    """The parts of a CiliumNode that we read or write; `trim` makes the plain object of it."""

    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None

    def trim(self) -> KubeObject:
        """Returns the object, with absent fields left out."""
        metadata = self.metadata
        trimmed = {"name": metadata.name, "uid": metadata.uid, "resourceVersion": metadata.resource_version}
        node: KubeObject = {"metadata": trimmed}
        if metadata.deletion_timestamp:
            node["metadata"]["deletionTimestamp"] = metadata.deletion_timestamp
        if metadata.annotations and IGNORE_ANNOTATION in metadata.annotations:
            node["metadata"]["annotations"] = {IGNORE_ANNOTATION: metadata.annotations[IGNORE_ANNOTATION]}
        if self.spec:
            parts = (("instance-id", self.spec.instance_id), ("eni", self.spec.eni), ("ipam", self.spec.ipam))
            node["spec"] = {key: value for key, value in parts if value is not UNSET}
        if self.status:
            found = (("eni", self.status.eni), ("ipam", self.status.ipam))
            node["status"] = {key: value for key, value in found if value is not UNSET}
        return node


def node_path(name: str, subresource: str = "") -> str:
    """Returns the path of one node, or of a subresource of it.

    Raises:
        NodeGone: no object can have that name. Quoting is no help: the server takes "a%2Fstatus" apart.
    """
    if not _NAME.fullmatch(name):
        raise NodeGone(f"CiliumNode {name!r} cannot exist: that is not a node's name")
    path = f"{NODES_PATH}/{name}"
    return f"{path}/{subresource}" if subresource else path
