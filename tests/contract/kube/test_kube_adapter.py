"""The adapter's reads and writes against both API servers, and on the sandbox's bad days."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from contract.kube.conftest import manifest
from contract.kube_servers import MERGE_PATCH, NODES, SERVICE, STRANGER, KubeTarget

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.nodes import KubeNodes
from eni_tasks.errors import (
    ClusterRefused,
    ClusterUnavailable,
    ConflictError,
    EniTasksError,
    InvalidInput,
    NodeGone,
)
from eni_tasks.model.cilium_node import (
    Eni,
    EniSpec,
    EniStatus,
    IpamSpec,
    IpamStatus,
    PoolEntry,
    Spec,
    Status,
    UsedEntry,
)
from eni_tasks.model.network import NodeName
from eni_tasks.sandbox.kube.knobs import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from eni_tasks.ports.kube import CiliumNodes

Create = Callable[..., dict[str, Any]]
ENIS = {"eni-1": {"id": "eni-1", "addresses": ["10.0.0.1"]}}
SHOWN = EniStatus(enis={"eni-1": Eni(id="eni-1", addresses=("10.0.0.1",))})


def connect(target: KubeTarget, folder: Path, token: str = SERVICE, timeout_seconds: float = 10) -> KubeNodes:
    return KubeNodes(KubeClient(timeout_seconds, 4, str(target.kubeconfig(folder / "kubeconfig", token))))


@pytest.fixture
def nodes(kube: KubeTarget, tmp_path: Path) -> CiliumNodes:
    return connect(kube, tmp_path)


def name_of(node: dict[str, Any]) -> NodeName:
    return NodeName(node["metadata"]["name"])


def same_uid(node: dict[str, Any]) -> dict[str, Any]:
    return {"op": "test", "path": "/metadata/uid", "value": node["metadata"]["uid"]}


class TestReads:
    def test_trimmed(self, nodes: CiliumNodes, create: Create) -> None:
        metadata = {"labels": {"a": "b"}, "annotations": {"c": "d", "ipam.cilium.io/ignore": "true"}}
        spec = {
            "instance-id": "i-1",
            "encryption": {"key": 5},
            "eni": {"vpc-id": "v"},
            "ipam": {"pre-allocate": 2},
        }
        created = create(spec=spec, metadata=metadata)
        del spec["encryption"]
        kept = {key: created["metadata"][key] for key in ("name", "uid", "resourceVersion", "creationTimestamp")}
        kept["annotations"] = {"ipam.cilium.io/ignore": "true"}
        assert msgspec.to_builtins(nodes.get(name_of(created))) == {"metadata": kept, "spec": spec}

    def test_missing(self, nodes: CiliumNodes) -> None:
        with pytest.raises(NodeGone, match=r'reading CiliumNode nobody: .*"nobody" not found'):
            nodes.get(NodeName("nobody"))

    @pytest.mark.parametrize("name", ["a/status", "..", "a?b", "", "A", "a" * 254])
    def test_what_is_no_name_asks_nothing(self, nodes: CiliumNodes, name: str) -> None:
        with pytest.raises(NodeGone, match="not a node's name"):
            nodes.get(NodeName(name))


class TestWrites:
    def test_status_then_spec(self, nodes: CiliumNodes, create: Create) -> None:
        node = create(spec={"eni": {"vpc-id": "v"}})
        status = [same_uid(node), {"op": "add", "path": "/status", "value": {"eni": {"enis": ENIS}}}]
        written = nodes.patch_status(name_of(node), status)
        assert written.status == Status(eni=SHOWN)
        pool = {"pool": {"10.0.0.1": {"resource": "eni-1"}}}
        written = nodes.patch_spec(name_of(node), [same_uid(node), {"op": "add", "path": "/spec/ipam", "value": pool}])
        shown = IpamSpec(pool={"10.0.0.1": PoolEntry(resource="eni-1")})
        assert written.spec == Spec(eni=EniSpec(vpc_id="v"), ipam=shown)
        assert written == nodes.get(name_of(node))

    def test_the_agents_writes_meanwhile_stay(self, kube: KubeTarget, nodes: CiliumNodes, create: Create) -> None:
        node = create(spec={"ipam": {"pre-allocate": 8}})
        used = {"status": {"ipam": {"used": {"10.0.0.1": {"owner": "pod"}}}}}
        path = f"{NODES}/{name_of(node)}"
        kube.call("PATCH", path + "/status", used, content_type=MERGE_PATCH)
        kube.call("PATCH", path, {"spec": {"ipam": {"pre-allocate": 2}}}, content_type=MERGE_PATCH)
        nodes.patch_status(name_of(node), [{"op": "add", "path": "/status/eni", "value": {"enis": ENIS}}])
        written = nodes.patch_spec(name_of(node), [{"op": "add", "path": "/spec/ipam/pool", "value": {}}])
        assert written.status == Status(eni=SHOWN, ipam=IpamStatus(used={"10.0.0.1": UsedEntry()}))
        assert written.spec == Spec(ipam=IpamSpec(pre_allocate=2, pool={}))

    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "test", "path": "/metadata/uid", "value": "another"},
            {"op": "add", "path": "/status/ipam/used", "value": {}},
        ],
        ids=["another-uid", "no-parent"],
    )
    @pytest.mark.parametrize("write", ["patch_status", "patch_spec"])
    def test_conflict(self, nodes: CiliumNodes, create: Create, write: str, operation: dict[str, Any]) -> None:
        node = create()
        with pytest.raises(ConflictError, match=f"of CiliumNode {name_of(node)}: "):
            getattr(nodes, write)(name_of(node), [operation])

    @pytest.mark.parametrize(
        ("write", "operation"),
        [
            ("patch_status", {"op": "add", "path": "/status", "value": {"eni": {"enis": {"e": {"number": -1}}}}}),
            ("patch_spec", {"op": "add", "path": "/spec/ipam", "value": {"pre-allocate": -1}}),
        ],
        ids=["status", "spec"],
    )
    def test_schema(self, nodes: CiliumNodes, create: Create, write: str, operation: dict[str, Any]) -> None:
        with pytest.raises(ClusterRefused, match="should be greater than or equal to 0"):
            getattr(nodes, write)(name_of(create()), [operation])

    @pytest.mark.parametrize("write", ["patch_status", "patch_spec"])
    def test_missing(self, nodes: CiliumNodes, write: str) -> None:
        with pytest.raises(NodeGone):
            getattr(nodes, write)(NodeName("nobody"), [{"op": "test", "path": "/metadata/uid", "value": "x"}])

    def test_without_rights(self, kube: KubeTarget, knobs: Callable[..., None], create: Create, tmp_path: Path) -> None:
        knobs(denied=["patch ciliumnodes/status"])
        node = create()
        with pytest.raises(ClusterRefused, match=r"cannot patch resource \"ciliumnodes/status\".*ClusterRole"):
            connect(kube, tmp_path, STRANGER).patch_status(name_of(node), [same_uid(node)])


class TestCredentials:
    def test_a_rotated_token_is_read_again(
        self, kube: KubeTarget, knobs: Callable[..., None], create: Create, tmp_path: Path
    ) -> None:
        name = name_of(create())
        knobs(token=SERVICE)
        nodes = connect(kube, tmp_path, "outdated")
        with pytest.raises(ClusterRefused, match="credentials are not accepted"):
            nodes.get(name)
        kube.kubeconfig(tmp_path / "kubeconfig", SERVICE)
        assert nodes.get(name).metadata.name == name

    def test_half_written_credentials_are_passing_trouble(self, sandbox: KubeTarget, tmp_path: Path) -> None:
        nodes = connect(sandbox, tmp_path)
        assert sandbox.admin
        sandbox.admin.set(token="rotated")  # noqa: S106 - not a secret
        (tmp_path / "kubeconfig").unlink()
        with pytest.raises(ClusterUnavailable, match="credentials are being replaced"):
            nodes.get(NodeName("a"))

    def test_none(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
        with pytest.raises(InvalidInput, match="Set KUBECONFIG"):
            KubeClient(1, 1)


class TestBadDays:
    @pytest.mark.parametrize(
        ("fault", "error", "retry_after_seconds"),
        [
            (Fault(code=429, retry_after_seconds=7), ClusterUnavailable, 7.0),
            (Fault(code=500), ClusterUnavailable, None),
            (Fault(code=503), ClusterUnavailable, None),
            (Fault(code=0), ClusterUnavailable, None),
            (Fault(code=0, after_effect=True), ClusterUnavailable, None),
            (Fault(code=409), ConflictError, None),
            (Fault(code=403), ClusterRefused, None),
        ],
        ids=["throttled", "500", "503", "dropped", "dropped-after-effect", "conflict", "forbidden"],
    )
    def test_faults(
        self,
        sandbox: KubeTarget,
        tmp_path: Path,
        fault: Fault,
        error: type[EniTasksError],
        retry_after_seconds: float | None,
    ) -> None:
        nodes = connect(sandbox, tmp_path)
        sandbox.call("POST", NODES, manifest("n1"))
        assert sandbox.admin
        sandbox.admin.fault(fault)
        operations = [{"op": "add", "path": "/spec/a", "value": 1}]
        with pytest.raises(error) as caught:
            nodes.patch_spec(NodeName("n1"), operations)
        assert getattr(caught.value, "retry_after_seconds", None) == retry_after_seconds
        assert sandbox.call("GET", f"{NODES}/n1")[1]["spec"] == ({"a": 1} if fault.after_effect else {})
        # One call, one request: nothing below us tries again on its own.
        assert sandbox.admin.record().counts["patch"] == 1
        nodes.patch_spec(NodeName("n1"), operations)

    def test_timeout(self, sandbox: KubeTarget, tmp_path: Path) -> None:
        nodes = connect(sandbox, tmp_path, timeout_seconds=0.2)
        assert sandbox.admin
        sandbox.admin.set(latency_seconds=1)
        with pytest.raises(ClusterUnavailable, match="no answer from the API server"):
            nodes.get(NodeName("n1"))
