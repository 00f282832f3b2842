"""The pods that wait on nodes, followed on the sandbox and on the real API server."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from contract.kube_servers import JSON_PATCH, KubeTarget

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.feed import KubePodFeed
from eni_tasks.watcher import watching
from eni_tasks.watcher.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from eni_tasks.model.pod import Pod
    from eni_tasks.ports.kube import Page

NODE, OTHER = "waiting-a", "waiting-b"
PODS = "/api/v1/namespaces/default/pods"


class Cluster:
    """Sets how many pods wait on a node."""

    def __init__(self, kube: KubeTarget) -> None:
        self._kube = kube

    def set(self, node: str, *, waiting: int, on_host_network: int = 0, running: int = 0) -> None:
        if self._kube.admin:
            addresses = [f"10.0.0.{last}" for last in range(running)]
            self._kube.admin.set_pods(node, addresses, waiting=waiting, waiting_on_host_network=on_host_network)
            return
        wanted = {
            **{f"{node}-waits-{number}": ("Pending", False) for number in range(waiting)},
            **{f"{node}-host-{number}": ("Pending", True) for number in range(on_host_network)},
            **{f"{node}-runs-{number}": ("Running", False) for number in range(running)},
        }
        present = {name for name in self.names() if name.startswith(f"{node}-")}
        for name in present - wanted.keys():
            self._kube.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        for name in sorted(wanted.keys() - present):
            phase, host_network = wanted[name]
            spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}], "hostNetwork": host_network}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            assert self._kube.call("POST", PODS, body)[0] == 201
            self.phase(name, phase)

    def phase(self, name: str, phase: str) -> None:
        operations = [{"op": "add", "path": "/status/phase", "value": phase}]
        code, answer = self._kube.call("PATCH", f"{PODS}/{name}/status", operations, content_type=JSON_PATCH)
        assert code == 200, answer

    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self._kube.call("GET", PODS)[1]["items"]]


@pytest.fixture
def cluster(kube: KubeTarget) -> Iterator[Cluster]:
    cluster = Cluster(kube)
    yield cluster
    for node in (NODE, OTHER):
        cluster.set(node, waiting=0)


@pytest.fixture
def feed(kube: KubeTarget, tmp_path: Path) -> KubePodFeed:
    """With the rights that the chart gives us."""
    client = KubeClient(10, 4, str(kube.kubeconfig(tmp_path / "kubeconfig")))
    return KubePodFeed(client, silence_seconds=20, page_limit_count=2)


class Waiting:
    """Keeps what the loop hands over."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self.pods: dict[str, str] = {}
        self.seen = 0

    def take_list(self, pages: Iterator[Page[Pod]]) -> tuple[int, str]:
        version = ""
        for page in pages:
            version = page.resource_version
            self.changed(page.objects)
        return len(self.pods), version

    def changed(self, objects: Any) -> None:
        with self._news:
            self.seen += len(objects)
            self.pods |= {pod.metadata.uid: pod.waits_on for pod in objects}
            self._news.notify_all()

    def removed(self, _name: str, uid: str) -> None:
        with self._news:
            self.pods.pop(uid, None)
            self._news.notify_all()

    def wait_for(self, **counts: int) -> None:
        def met() -> bool:
            nodes = list(self.pods.values())
            return {node.replace("-", "_"): nodes.count(node) for node in set(nodes) - {""}} == counts

        with self._news:
            assert self._news.wait_for(met, 30), self.pods


def test_only_pods_that_wait_on_a_node_are_listed(cluster: Cluster, feed: KubePodFeed) -> None:
    cluster.set(NODE, waiting=3, on_host_network=2, running=4)
    cluster.set(OTHER, waiting=1)
    pods = [pod for page in feed.pages() for pod in page.objects]
    assert sorted(pod.waits_on for pod in pods) == ["", "", NODE, NODE, NODE, OTHER]


def test_changes_are_followed(cluster: Cluster, feed: KubePodFeed) -> None:
    cluster.set(NODE, waiting=2)
    sink = Waiting()
    loop = Watching("pods", feed, sink, relist_seconds=300, silence_seconds=20)
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        sink.wait_for(waiting_a=2)
        cluster.set(OTHER, waiting=3, on_host_network=1)
        sink.wait_for(waiting_a=2, waiting_b=3)
        cluster.set(NODE, waiting=1, running=1)
        sink.wait_for(waiting_a=1, waiting_b=3)
        cluster.set(OTHER, waiting=0)
        sink.wait_for(waiting_a=1)
    finally:
        loop.stop()
        thread.join()


def test_a_pod_that_begins_to_run_is_gone_for_the_watch(kube: KubeTarget, cluster: Cluster, feed: KubePodFeed) -> None:
    if kube.admin:
        pytest.skip("the sandbox replaces pods: see the test before")
    cluster.set(NODE, waiting=1)
    (page,) = feed.pages()
    (pod,) = page.objects
    cluster.phase(pod.metadata.name, "Running")
    deadline = time.monotonic() + 10
    for changes in feed.changes(page.resource_version, 10):
        if changes.gone:
            assert changes.gone == ((pod.metadata.name, pod.metadata.uid),)
            break
        assert time.monotonic() < deadline
    else:
        raise AssertionError("the watch ended without it")


def test_without_the_right_nothing_is_followed_until_it_is_given(
    kube: KubeTarget, cluster: Cluster, feed: KubePodFeed, knobs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kube.admin:
        pytest.skip("rights of the real server are taken away in test_chart_installed")
    monkeypatch.setattr(watching, "_LONGEST_PAUSE_SECONDS", 0.2)
    cluster.set(NODE, waiting=2)
    knobs(denied=["list pods"])
    sink = Waiting()
    loop = Watching("pods", feed, sink, relist_seconds=300, silence_seconds=20)
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not loop._failures_count > 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (loop.follows, loop.stuck, sink.seen) == (False, False, 0)
        knobs(denied=[])
        sink.wait_for(waiting_a=2)
    finally:
        loop.stop()
        thread.join()
