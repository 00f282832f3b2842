"""Kubernetes Events about nodes: the port `EventWriter`.

One Event of core/v1 per object and reason: a repetition raises its count, which `kubectl describe` shows.
CiliumNodes and Nodes have no namespace; the API server takes Events about such objects in `default` only.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from eni_tasks.errors import ClusterUnavailable, ConflictError, NodeGone

if TYPE_CHECKING:
    from eni_tasks.adapters.kube.client import KubeClient
    from eni_tasks.model.node_event import NodeEvent

EVENTS_PATH = "/api/v1/namespaces/default/events"
COMPONENT = "eni-tasks"
_MERGE_PATCH = "application/merge-patch+json"
_MOST_CHARACTERS = 1024  # of a message, as the API server allows
_KNOWN_COUNT = 10_000  # Events whose count is known without asking


class _Event(msgspec.Struct):
    count: int = 1


class KubeEvents:
    """Writes Events.

    Args:
        client: the way there.
        instance: the name of this process: its pod's.
        on_nodes: tell it of the Node of the same name, too.
    """

    def __init__(self, client: KubeClient, instance: str, *, on_nodes: bool) -> None:
        self._client = client
        self._instance = instance
        self._on_nodes = on_nodes
        self._counts: dict[str, int] = {}

    def write(self, event: NodeEvent) -> None:
        """Write one event; see the port."""
        about = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "name": event.node, "uid": event.uid}
        self._write(event, about)
        if self._on_nodes:
            # As kubelet does: `kubectl describe node` looks for Events with the name for a uid.
            self._write(event, {"apiVersion": "v1", "kind": "Node", "name": event.node, "uid": event.node})

    def _write(self, event: NodeEvent, about: dict[str, str]) -> None:
        key = "/".join((about["kind"], about["uid"], event.reason))
        name = f"{event.node}.{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        seen = {"message": event.message[:_MOST_CHARACTERS], "lastTimestamp": _now()}
        if len(self._counts) > _KNOWN_COUNT:
            self._counts.clear()
        count = self._counts.get(name)
        try:
            if count is None:
                self._create(name, event, about, seen)
                return
            self._counts[name] = self._patch(name, {**seen, "count": count + 1})
        except ConflictError:
            # Another process, or this one before it was restarted, has written it.
            self._counts[name] = self._patch(name, {"count": self._patch(name, seen) + 1})
        except NodeGone:
            # The API server forgets Events after an hour.
            self._counts.pop(name, None)
            self._create(name, event, about, seen)

    def _create(self, name: str, event: NodeEvent, about: dict[str, str], seen: dict[str, str]) -> None:
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": about,
            "reason": event.reason,
            "type": "Warning" if event.warning else "Normal",
            "source": {"component": COMPONENT, "host": self._instance},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": seen["lastTimestamp"],
            "count": 1,
            **seen,
        }
        self._client.call("POST", EVENTS_PATH, what=f"writing an Event about {event.node}", body=body)
        self._counts[name] = 1

    def _patch(self, name: str, changes: dict[str, Any]) -> int:
        """Change an Event; returns its count then."""
        what = f"writing the Event {name}"
        path = f"{EVENTS_PATH}/{name}"
        answer = self._client.call("PATCH", path, what=what, node=name, body=changes, content_type=_MERGE_PATCH)
        try:
            return msgspec.json.decode(answer, type=_Event).count
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(f"{what}: the answer is no Event: {error}") from error


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
