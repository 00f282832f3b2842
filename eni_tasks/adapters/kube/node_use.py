"""The pods of one node and its health, read afresh: the port `NodeUses`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from eni_tasks.errors import ClusterUnavailable, NodeGone
from eni_tasks.ports.kube import NodeUse

if TYPE_CHECKING:
    from eni_tasks.adapters.kube.client import KubeClient
    from eni_tasks.model.network import NodeName

PAGE_COUNT = 500
_ENDED = ("Succeeded", "Failed")  # a pod in one of these phases has given its address back
T = TypeVar("T")


class _PodIp(msgspec.Struct):
    ip: str = ""


class _PodStatus(msgspec.Struct):
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: list[_PodIp] = msgspec.field(default_factory=list, name="podIPs")


class _Pod(msgspec.Struct):
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _ListMetadata(msgspec.Struct):
    next_token: str = msgspec.field(default="", name="continue")


class _Pods(msgspec.Struct):
    items: list[_Pod]
    metadata: _ListMetadata


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _Node(msgspec.Struct):
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class KubeNodeUses:
    """Asks an API server.

    Args:
        client: the way there.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def read(self, name: NodeName) -> NodeUse:
        """Read the pods of one node and its health; see the port."""
        return NodeUse(ready_since=self._ready_since(name), addresses=frozenset(self._addresses(name)))

    def _ready_since(self, name: NodeName) -> float | None:
        try:
            found = self._asked(f"/api/v1/nodes/{quote(name)}", _Node, f"reading Node {name}", node=name)
        except NodeGone:
            return None
        for condition in found.status.conditions:
            if condition.type == "Ready" and condition.status == "True":
                return _seconds(condition.last_transition_time)
        return None

    def _addresses(self, name: NodeName) -> set[str]:
        selector = ",".join([f"spec.nodeName={name}", *(f"status.phase!={phase}" for phase in _ENDED)])
        addresses: set[str] = set()
        token = ""
        while True:
            query = {"fieldSelector": selector, "limit": PAGE_COUNT} | ({"continue": token} if token else {})
            page = self._asked(f"/api/v1/pods?{urlencode(query)}", _Pods, f"listing the pods of {name}")
            for pod in page.items:
                addresses |= {pod.status.pod_ip, *(each.ip for each in pod.status.pod_ips)}
            token = page.metadata.next_token
            if not token:
                return addresses - {""}

    def _asked(self, path: str, kind: type[T], what: str, *, node: str = "") -> T:
        answer = self._client.call("GET", path, what=what, node=node)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(f"{what}: the answer can't be read: {error}") from error


def _seconds(time: str | None) -> float:
    """Seconds since 1970 of a time of Kubernetes'; 0 if there is none."""
    try:
        return datetime.fromisoformat(time or "").timestamp()
    except ValueError:
        return 0.0
