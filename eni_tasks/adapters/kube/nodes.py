"""Reading and patching one CiliumNode: the port `CiliumNodes`.

Writes are JSON Patch: they change the fields that we own on whatever the object is by then, and their
`test` operations refuse what is another object by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.domain.cilium_node import decode_node
from eni_tasks.errors import ClusterUnavailable, InvalidInput, NodeGone
from eni_tasks.model.node import NODE_NAME

if TYPE_CHECKING:
    from eni_tasks.adapters.kube.client import KubeClient
    from eni_tasks.model.cilium_node import CiliumNode
    from eni_tasks.model.network import NodeName
    from eni_tasks.ports.kube import PatchOps

NODES_PATH = "/apis/cilium.io/v2/ciliumnodes"
_JSON_PATCH = "application/json-patch+json"


class KubeNodes:
    """CiliumNodes on an API server.

    Args:
        client: the way there.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def get(self, name: NodeName) -> CiliumNode:
        """Read one object; see the port."""
        what = f"reading CiliumNode {name}"
        return _parse(self._client.call("GET", node_path(name), what=what, node=name), what)

    def patch_status(self, name: NodeName, operations: PatchOps) -> CiliumNode:
        """Patch the status subresource; see the port."""
        return self._patch(name, "status", operations)

    def patch_spec(self, name: NodeName, operations: PatchOps) -> CiliumNode:
        """Patch the object itself; see the port."""
        return self._patch(name, "", operations)

    def _patch(self, name: NodeName, subresource: str, operations: PatchOps) -> CiliumNode:
        what = f"writing the {subresource or 'spec'} of CiliumNode {name}"
        path = node_path(name, subresource)
        answer = self._client.call("PATCH", path, what=what, node=name, body=operations, content_type=_JSON_PATCH)
        return _parse(answer, what)


def _parse(answer: bytes, what: str) -> CiliumNode:
    try:
        return decode_node(answer)
    except InvalidInput as error:
        raise ClusterUnavailable(f"{what}: the answer is no CiliumNode: {error}") from error


def node_path(name: str, subresource: str = "") -> str:
    """Returns the path of one node, or of a subresource of it.

    Raises:
        NodeGone: no object can have that name. Quoting is no help: the server takes "a%2Fstatus" apart.
    """
    if not NODE_NAME.fullmatch(name):
        raise NodeGone(f"CiliumNode {name!r} cannot exist: that is not a node's name")
    path = f"{NODES_PATH}/{name}"
    return f"{path}/{subresource}" if subresource else path
