"""Reading and patching one CiliumNode: the port `CiliumNodes`.

Writes are JSON Patch: they change the fields that we own on whatever the object is by then, and their
`test` operations refuse what is another object by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.adapters.kube.objects import TrimmedNode, node_path
from eni_tasks.errors import ClusterUnavailable

if TYPE_CHECKING:
    from eni_tasks.adapters.kube.client import KubeClient
    from eni_tasks.model.network import NodeName
    from eni_tasks.ports.kube import KubeObject, PatchOps

_JSON_PATCH = "application/json-patch+json"
_DECODER = msgspec.json.Decoder(TrimmedNode)


class KubeNodes:
    """CiliumNodes on an API server.

    Args:
        client: the way there.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def get(self, name: NodeName) -> KubeObject:
        """Read one object; see the port."""
        what = f"reading CiliumNode {name}"
        return _parse(self._client.call("GET", node_path(name), what=what, node=name), what)

    def patch_status(self, name: NodeName, operations: PatchOps) -> KubeObject:
        """Patch the status subresource; see the port."""
        return self._patch(name, "status", operations)

    def patch_spec(self, name: NodeName, operations: PatchOps) -> KubeObject:
        """Patch the object itself; see the port."""
        return self._patch(name, "", operations)

    def _patch(self, name: NodeName, subresource: str, operations: PatchOps) -> KubeObject:
        what = f"writing the {subresource or 'spec'} of CiliumNode {name}"
        path = node_path(name, subresource)
        answer = self._client.call("PATCH", path, what=what, node=name, body=operations, content_type=_JSON_PATCH)
        return _parse(answer, what)


def _parse(answer: bytes, what: str) -> KubeObject:
    try:
        return _DECODER.decode(answer).trim()
    except msgspec.MsgspecError as error:
        raise ClusterUnavailable(f"{what}: the answer is no CiliumNode: {error}") from error
