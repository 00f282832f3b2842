"""Which pods count as waiting, and what is kept of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eni_tasks.model.pod import decode_pod
from eni_tasks.ports.kube import Page
from eni_tasks.services import pending_pods
from eni_tasks.services.pending_pods import PendingPods


def pod(uid: str, node: str | None = "node", phase: str = "Pending", **more: Any) -> Any:
    spec = ({"nodeName": node} if node else {}) | more.pop("spec", {})
    metadata = {"name": f"pod-{uid}", "uid": uid, "resourceVersion": "7", **more}
    containers = [{"name": "main", "env": [{"name": "SECRET", "value": "x" * 1000}]}]
    body = {"metadata": metadata, "spec": spec | {"containers": containers}, "status": {"phase": phase}}
    return decode_pod(json.dumps(body).encode())


class Written:
    """Stands for the state: keeps what was written last."""

    def __init__(self) -> None:
        self.nodes = self
        self.counts: dict[str, int] | None = None
        self.error: Exception | None = None

    def put_pending_pods(self, counts: dict[str, int], *, lifetime_seconds: float) -> None:
        assert lifetime_seconds > pending_pods.AGAIN_SECONDS
        if self.error:
            raise self.error
        self.counts = counts


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
def pods(written: Written) -> PendingPods:
    return PendingPods(written)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "node"),
    [
        (pod("1"), "node"),
        (pod("1", None), ""),
        (pod("1", phase="Running"), ""),
        (pod("1", phase="Succeeded"), ""),
        (pod("1", spec={"hostNetwork": True}), ""),
        (pod("1", spec={"hostNetwork": False}), "node"),
        (pod("1", deletionTimestamp="2026-01-01T00:00:00Z"), ""),
        (decode_pod(b'{"metadata": {"name": "bare", "uid": "1"}}'), ""),
    ],
    ids=["waits", "unbound", "runs", "has-ended", "host-network", "own-network", "is-deleted", "bare"],
)
def test_whether_a_pod_waits(given: Any, node: str) -> None:
    assert given.waits_on == node


def test_pods_are_counted_by_node_as_they_come_and_go(pods: PendingPods, written: Written) -> None:
    pods.changed([pod("1"), pod("2"), pod("3", "other")])
    pods.write()
    assert written.counts == {"node": 2, "other": 1}
    pods.changed([pod("1", phase="Running"), pod("2"), pod("4", "other")])
    pods.removed("pod-3", "3")
    pods.write()
    assert written.counts == {"node": 1, "other": 1}


def test_a_list_replaces_what_was_known(pods: PendingPods, written: Written) -> None:
    pods.changed([pod("1"), pod("2")])
    pages = [
        Page(objects=(pod("2"), pod("5")), resource_version="9"),
        Page(objects=(pod("6", "other"),), resource_version="9"),
    ]
    assert pods.take_list(pages) == (3, "9")
    pods.write()
    assert written.counts == {"node": 2, "other": 1}


def test_unchanged_counts_are_not_written_again_and_refused_ones_are(pods: PendingPods, written: Written) -> None:
    pods.changed([pod("1")])
    written.error = RuntimeError("Redis is away")
    with pytest.raises(RuntimeError):
        pods.write()
    written.error = None
    pods.write()
    assert written.counts == {"node": 1}
    written.counts = None
    pods.changed([pod("1")])  # nothing that matters
    pods.write()
    assert written.counts is None


def test_what_is_kept_is_bounded(pods: PendingPods, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_pods, "MOST_PODS", 3)
    pods.changed([pod(str(number)) for number in range(5)])
    pods.write()
    assert written.counts == {"node": 3}
    pods.take_list([Page(objects=tuple(pod(str(number)) for number in range(9)), resource_version="1")])
    pods.write()
    assert written.counts == {"node": 3}
