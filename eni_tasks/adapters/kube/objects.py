"""Where CiliumNodes are on an API server."""

from __future__ import annotations

from eni_tasks.errors import NodeGone
from eni_tasks.model.names import NODE_NAME

NODES_PATH = "/apis/cilium.io/v2/ciliumnodes"


def node_path(name: str, subresource: str = "") -> str:
    """Returns the path of one node, or of a subresource of it.

    Raises:
        NodeGone: no object can have that name. Quoting is no help: the server takes "a%2Fstatus" apart.
    """
    if not NODE_NAME.fullmatch(name):
        raise NodeGone(f"CiliumNode {name!r} cannot exist: that is not a node's name")
    path = f"{NODES_PATH}/{name}"
    return f"{path}/{subresource}" if subresource else path
