"""Pods and Nodes of the core API, as far as anyone asks for them: lists and watches of pods by field, and one Node.

The control API sets a node's pods all at once. There is a Node for each CiliumNode, which is ready unless it says that
it is not.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote

import msgspec

from eni_tasks.sandbox.kube.statuses import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eni_tasks.sandbox.kube.store import NodeStore

CORE_PATH = "/api/v1/"
_PODS_PATH, _NODES_PATH = f"{CORE_PATH}pods", f"{CORE_PATH}nodes/"
_HISTORY_COUNT = 100_000
_IDLE_SECONDS = 1.0
_TRUE = ("1", "true", "True")

Body = dict[str, Any]
Matches = Callable[[Body], bool]


class _Change(NamedTuple):
    version: int
    before: Body | None
    after: Body | None


class Core:
    """Pods and Nodes in memory.

    Args:
        nodes: the CiliumNodes.
    """

    def __init__(self, nodes: NodeStore) -> None:
        self._nodes = nodes
        self._changed = threading.Condition()
        self._version = 1000
        self._pods: dict[str, Body] = {}
        self._history: deque[_Change] = deque(maxlen=_HISTORY_COUNT)
        self._not_ready: dict[str, float] = {}
        self._ready_since: dict[str, float] = {}

    # -- what the control API does ------------------------------------------------------------------
    def set_pods(self, node: str, addresses: list[str], *, waiting: int = 0, waiting_on_host_network: int = 0) -> None:
        """Set the pods of a node: one that runs per address, and such that wait in phase Pending without one."""
        wanted = {f"pod-{address}": _pod(node, f"pod-{address}", "Running", [address]) for address in addresses}
        for count, host_network in ((waiting, False), (waiting_on_host_network, True)):
            for number in range(count):
                name = f"{'host' if host_network else 'waiting'}-{node}-{number}"
                wanted[name] = _pod(node, name, "Pending", [], host_network=host_network)
        with self._changed:
            present = {name for name, pod in self._pods.items() if pod["spec"]["nodeName"] == node}
            for name in sorted(present | wanted.keys()):
                self._put(name, wanted.get(name))
            self._changed.notify_all()

    def _put(self, name: str, pod: Body | None) -> None:
        before = self._pods.get(name)
        if pod and before and all(before[part] == pod[part] for part in ("spec", "status")):
            return
        self._version += 1
        if pod is None:
            self._pods.pop(name, None)
        else:
            pod["metadata"]["resourceVersion"] = str(self._version)
            self._pods[name] = pod
        self._history.append(_Change(self._version, before, pod))

    def set_ready(self, node: str, *, ready: bool) -> None:
        """Set whether a Node is ready, from now on."""
        with self._changed:
            (self._ready_since if ready else self._not_ready)[node] = time.time()
            if ready:
                self._not_ready.pop(node, None)

    # -- what the API answers -----------------------------------------------------------------------
    def answer(self, path: str, query_text: str) -> tuple[bytes, Iterator[bytes] | None]:
        """Answer a GET of pods or of one Node: the body, or the lines of a watch.

        Raises:
            ApiError: no such path or Node, or no right to it.
        """
        query = {key: values[-1] for key, values in parse_qs(query_text).items()}
        if path.startswith(_NODES_PATH):
            self._need("get nodes")
            return msgspec.json.encode(self._node(unquote(path.removeprefix(_NODES_PATH)))), None
        if path != _PODS_PATH:
            raise ApiError(404, "the server could not find the requested resource")
        matches = _selector(query.get("fieldSelector", ""))
        if query.get("watch") in _TRUE:
            self._need("watch pods")
            seconds = float(query.get("timeoutSeconds") or 3600)
            return b"", self._lines(int(query.get("resourceVersion") or 0), matches, seconds)
        self._need("list pods")
        return self._list(matches, int(query.get("limit") or 0), query.get("continue", "")), None

    def _need(self, right: str) -> None:
        if right in self._nodes.knobs.denied:
            verb, _, resource = right.partition(" ")
            raise ApiError(403, f'{resource} is forbidden: User "sandbox" cannot {verb} resource "{resource}"')

    def _node(self, name: str) -> Body:
        self._nodes.get(name)
        not_ready_at = self._not_ready.get(name)
        since = not_ready_at or self._ready_since.get(name, 0.0)
        changed = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "Unknown" if not_ready_at else "True", "lastTransitionTime": changed}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"conditions": [ready]}}

    def _list(self, matches: Matches, limit: int, after: str) -> bytes:
        with self._changed:
            names = sorted(name for name, pod in self._pods.items() if name > after and matches(pod))
            shown = names[:limit] if limit else names
            more = shown[-1] if len(shown) < len(names) else ""
            metadata = {"resourceVersion": str(self._version), "continue": more}
            items = [self._pods[name] for name in shown]
        return msgspec.json.encode({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": items})

    def _lines(self, version: int, matches: Matches, seconds: float) -> Iterator[bytes]:
        ends_at = time.monotonic() + seconds
        if version and (not self._history or version < self._history[0].version - 1) and version < self._version:
            gone = ApiError(410, f"too old resource version: {version}")
            yield msgspec.json.encode({"type": "ERROR", "object": gone.body}) + b"\n"
            return
        while (left := ends_at - time.monotonic()) > 0:
            with self._changed:
                if self._version <= version:
                    self._changed.wait(min(left, _IDLE_SECONDS))
                changes = [change for change in self._history if change.version > version]
                version = self._version
            yield b"".join(line for change in changes if (line := _event(change, matches)))


def _event(change: _Change, matches: Matches) -> bytes:
    """One line of a watch: an object that stops to match is deleted, as far as the watch is concerned."""
    was = change.before is not None and matches(change.before)
    is_ = change.after is not None and matches(change.after)
    if not was and not is_:
        return b""
    kind = "DELETED" if not is_ else "MODIFIED" if was else "ADDED"
    pod = change.after or change.before or {}
    pod = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(change.version)}}
    return msgspec.json.encode({"type": kind, "object": pod}) + b"\n"


def _pod(node: str, name: str, phase: str, addresses: list[str], *, host_network: bool = False) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"nodeName": node} | ({"hostNetwork": True} if host_network else {}),
        "status": {"phase": phase} | ({"podIPs": [{"ip": each} for each in addresses]} if addresses else {}),
    }


def _selector(text: str) -> Matches:
    """Read a field selector: "spec.nodeName=a,status.phase!=Failed"."""
    terms = []
    for term in filter(None, text.split(",")):
        field, _, value = term.partition("=")
        negated = field.endswith("!")
        part, _, key = field.rstrip("!").partition(".")
        if (part, key) not in (("spec", "nodeName"), ("spec", "hostNetwork"), ("status", "phase")):
            raise ApiError(400, f"field label not supported: {field.rstrip('!')}")
        terms.append((part, key, value.removeprefix("="), negated))

    def matches(pod: Body) -> bool:
        return all((str(pod[part].get(key, "")) == value) is not negated for part, key, value, negated in terms)

    return matches
