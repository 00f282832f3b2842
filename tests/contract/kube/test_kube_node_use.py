"""The pods of a node and its health, asked of the sandbox and of the real API server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from contract.kube_servers import ADMIN, JSON_PATCH, MERGE_PATCH, STRANGER, KubeTarget

from eni_tasks.adapters.kube import node_use
from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.node_use import KubeNodeUses
from eni_tasks.errors import ClusterRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NODES = "/apis/cilium.io/v2/ciliumnodes"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(autouse=True)
def _as_before(kube: KubeTarget) -> Iterator[None]:
    yield
    if kube.admin:
        for node in ("with-pods", "another", "ready", "silent"):
            kube.admin.set_pods(node, [])
            kube.call("DELETE", f"{NODES}/{node}")
        return
    at_once = {"gracePeriodSeconds": 0}
    for path in (PODS, "/api/v1/nodes"):
        for item in kube.call("GET", path)[1]["items"]:
            kube.call("DELETE", f"{path}/{item['metadata']['name']}", at_once)


def uses(kube: KubeTarget, folder: Path, token: str = ADMIN) -> KubeNodeUses:
    return KubeNodeUses(KubeClient(10, 2, str(kube.kubeconfig(folder / "kubeconfig", token))))


def add_node(kube: KubeTarget, name: str, *, ready: str | None = "True") -> None:
    if kube.admin:
        head = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}}
        assert kube.call("POST", NODES, head | {"spec": {}})[0] == 201
        kube.admin.set_ready(name, ready=ready == "True")
        return
    assert (
        kube.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})[0] == 201
    )
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": now, "lastHeartbeatTime": now}
    body = {"status": {"conditions": [condition]}}
    code, answer = kube.call("PATCH", f"/api/v1/nodes/{name}/status", body, content_type=MERGE_PATCH)
    assert code == 200, answer


def add_pods(kube: KubeTarget, node: str, addresses: list[str]) -> None:
    if kube.admin:
        kube.admin.set_pods(node, addresses)
        return
    for address in addresses:
        add_pod(kube, node, f"pod-{address}", {"phase": "Running", "podIPs": [{"ip": address}], "podIP": address})


def add_pod(kube: KubeTarget, node: str, name: str, status: dict[str, Any]) -> None:
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    code, answer = kube.call("POST", PODS, body)
    assert code == 201, answer
    operations = [{"op": "replace", "path": "/status", "value": status}]
    code, answer = kube.call("PATCH", f"{PODS}/{name}/status", operations, content_type=JSON_PATCH)
    assert code == 200, answer


def test_addresses_of_all_pods_of_one_node(kube: KubeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_use, "PAGE_COUNT", 2)
    add_node(kube, "with-pods")
    add_node(kube, "another")
    mine = [f"10.0.0.{last}" for last in range(1, 6)]
    add_pods(kube, "with-pods", mine)
    add_pods(kube, "another", ["10.0.1.1"])
    assert uses(kube, tmp_path).read("with-pods").addresses == set(mine)


def test_pods_that_have_ended_hold_nothing(kube: KubeTarget, tmp_path: Path) -> None:
    if kube.admin:
        pytest.skip("the sandbox has no pods that have ended")
    add_node(kube, "ended")
    add_pod(kube, "ended", "done", {"phase": "Succeeded", "podIP": "10.0.2.1", "podIPs": [{"ip": "10.0.2.1"}]})
    both = [{"ip": "10.0.2.2"}, {"ip": "fd00::2"}]
    add_pod(kube, "ended", "dual", {"phase": "Running", "podIP": "10.0.2.2", "podIPs": both})
    add_pod(kube, "ended", "new", {"phase": "Pending"})
    assert uses(kube, tmp_path).read("ended").addresses == {"10.0.2.2", "fd00::2"}


def test_since_when_a_node_is_ready(kube: KubeTarget, tmp_path: Path) -> None:
    add_node(kube, "ready")
    ready_since = uses(kube, tmp_path).read("ready").ready_since
    assert ready_since is not None
    assert abs(ready_since - time.time()) < 60


@pytest.mark.parametrize("name", ["silent", "nowhere"])
def test_a_node_that_is_not_ready(kube: KubeTarget, tmp_path: Path, name: str) -> None:
    if name == "silent":
        add_node(kube, name, ready="Unknown")
    assert uses(kube, tmp_path).read(name).ready_since is None


def test_a_missing_right_is_named(kube: KubeTarget, tmp_path: Path, knobs: Callable[..., None]) -> None:
    if kube.admin:
        knobs(denied=["list pods"])
    with pytest.raises(ClusterRefused, match=r"listing the pods|reading Node"):
        uses(kube, tmp_path, STRANGER).read("ready")
