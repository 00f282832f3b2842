"""Events on the real API server, with the chart's rights, found as `kubectl describe` looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from contract.kube_servers import NODES, SERVICE, STRANGER, KubeTarget

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.events import EVENTS_PATH, KubeEvents
from eni_tasks.errors import ClusterRefused
from eni_tasks.model.node_event import NodeEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def node(real_kube: KubeTarget) -> Iterator[dict[str, Any]]:
    body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"generateName": "told-"}, "spec": {}}
    code, created = real_kube.call("POST", NODES, body)
    assert code == 201, created
    yield created["metadata"]
    assert real_kube.call("DELETE", f"{NODES}/{created['metadata']['name']}")[0] == 200


@pytest.fixture
def process(real_kube: KubeTarget, tmp_path: Path) -> Callable[..., KubeEvents]:
    """One process that writes Events."""

    def start(name: str = "pod-1", token: str = SERVICE, *, on_nodes: bool = False) -> KubeEvents:
        kubeconfig = real_kube.kubeconfig(tmp_path / name, token)
        return KubeEvents(KubeClient(10, 2, str(kubeconfig)), name, on_nodes=on_nodes)

    return start


def event(node: dict[str, Any], message: str = "full", reason: str = "AtCapacity", **more: Any) -> NodeEvent:
    return NodeEvent(node=node["name"], uid=node["uid"], reason=reason, message=message, **more)


def described(api: KubeTarget, kind: str, name: str, uid: str) -> list[dict[str, Any]]:
    """What `kubectl describe` shows below Events."""
    fields = {"involvedObject.kind": kind, "involvedObject.name": name, "involvedObject.uid": uid}
    selector = quote(",".join(f"{field}={value}" for field, value in fields.items()))
    code, found = api.call("GET", f"/api/v1/events?fieldSelector={selector}")
    assert code == 200, found
    return sorted(found["items"], key=lambda item: item["reason"])


def test_describing_the_cilium_node_shows_it(real_kube, node, process):
    process().write(event(node, warning=True))
    process().write(event(node, "eni-1 was created", "InterfaceCreated"))
    full, created = described(real_kube, "CiliumNode", node["name"], node["uid"])
    assert (full["type"], full["reason"], full["message"], full["count"]) == ("Warning", "AtCapacity", "full", 1)
    assert full["source"] == {"component": "eni-tasks", "host": "pod-1"}
    assert created["type"] == "Normal"
    assert described(real_kube, "Node", node["name"], node["name"]) == []


def test_describing_the_node_shows_it_if_that_is_wanted(real_kube, node, process):
    process(on_nodes=True).write(event(node))
    for kind, uid in (("CiliumNode", node["uid"]), ("Node", node["name"])):
        (found,) = described(real_kube, kind, node["name"], uid)
        assert found["message"] == "full"


def test_repetitions_raise_the_count_whichever_process_tells(real_kube, node, process):
    first, second = process(), process("pod-2")
    first.write(event(node, "full 1"))
    first.write(event(node, "full 2"))
    second.write(event(node, "full 3"))
    second.write(event(node, "full 4"))
    (found,) = described(real_kube, "CiliumNode", node["name"], node["uid"])
    assert (found["count"], found["message"]) == (4, "full 4")
    assert found["firstTimestamp"] <= found["lastTimestamp"]


def test_what_the_api_server_forgot_is_told_anew(real_kube, node, process):
    writer = process()
    writer.write(event(node))
    writer.write(event(node))
    (found,) = described(real_kube, "CiliumNode", node["name"], node["uid"])
    assert real_kube.call("DELETE", f"{EVENTS_PATH}/{found['metadata']['name']}")[0] == 200
    writer.write(event(node, "still full"))
    (again,) = described(real_kube, "CiliumNode", node["name"], node["uid"])
    assert (again["count"], again["message"]) == (1, "still full")


def test_a_long_message_is_cut(real_kube, node, process):
    process().write(event(node, "x" * 5000))
    (found,) = described(real_kube, "CiliumNode", node["name"], node["uid"])
    assert found["message"] == "x" * 1024


def test_without_the_right_it_is_refused(node, process):
    with pytest.raises(ClusterRefused, match="rights are missing"):
        process(token=STRANGER).write(event(node))
