"""The two Kubernetes APIs that the contract tests run against: our sandbox, and the real kube-apiserver.

The real one comes from the folder in KUBEBUILDER_ASSETS (envtest's convention) and runs on free loopback
ports with an etcd, a throw-away CA, RBAC, and the CiliumNode definition installed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import urllib3
from certificates import write_certificates
from chart import objects

from eni_tasks.sandbox.kube.admin import KubeAdmin, write_kubeconfig
from eni_tasks.sandbox.kube.schema import definition
from eni_tasks.sandbox.kube.server import KubeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = "/apis/cilium.io/v2/ciliumnodes"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
# Tokens of the real server: everything, exactly the rights that the chart gives us, and nothing.
ADMIN, SERVICE, STRANGER = "admin-token", "service-token", "stranger-token"
_START_SECONDS = 60.0


@dataclass
class KubeTarget:
    """A server under test; `admin` turns the sandbox's knobs, `etcd_url` reaches behind the real one."""

    kind: str
    url: str
    ca_file: Path | None = None
    admin: KubeAdmin | None = None
    etcd_url: str = ""
    _pool: urllib3.PoolManager = field(init=False)

    def __post_init__(self) -> None:
        ca_file = str(self.ca_file) if self.ca_file else None
        self._pool = urllib3.PoolManager(retries=False, ca_certs=ca_file, timeout=30.0, maxsize=8)

    def open(self, method: str, path: str, body: Any = None, **options: Any) -> urllib3.BaseHTTPResponse:
        """Sends a request and leaves the body unread."""
        headers = {
            "Authorization": f"Bearer {options.pop('token', ADMIN)}",
            "Content-Type": options.pop("content_type", "application/json"),
        }
        data = None if body is None else json.dumps(body)
        return self._pool.request(method, self.url + path, body=data, headers=headers, preload_content=False, **options)

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Sends a request; returns the status and the parsed body (text if it isn't JSON)."""
        response = self.open(method, path, body, **options)
        data = response.data.decode()
        return response.status, json.loads(data) if data.startswith("{") else data

    def lines(self, path: str) -> list[dict[str, Any]]:
        """Reads a watch to its end."""
        response = self.open("GET", path)
        assert response.status == 200, response.data
        return [json.loads(line) for line in response.data.splitlines()]

    def compact(self) -> None:
        """Forgets the history that continue tokens need."""
        if self.admin:
            self.admin.compact()
            return
        version = self.call("GET", f"{NODES}?limit=1")[1]["metadata"]["resourceVersion"]
        body = {"revision": version, "physical": True}
        answer = self._pool.request("POST", f"{self.etcd_url}/v3/kv/compaction", body=json.dumps(body))
        assert answer.status == 200, answer.data

    def kubeconfig(self, path: Path, token: str = SERVICE) -> Path:
        """Writes a kubeconfig for this server."""
        config = json.loads(write_kubeconfig(path, self.url, token).read_text())
        if self.ca_file:
            config["clusters"][0]["cluster"]["certificate-authority"] = str(self.ca_file)
        path.write_text(json.dumps(config))
        return path


@contextmanager
def sandbox_server() -> Iterator[KubeTarget]:
    """Runs our own API in this process."""
    with KubeServer() as server:
        yield KubeTarget("sandbox", server.url, admin=KubeAdmin(server.url))


@contextmanager
def real_server() -> Iterator[KubeTarget]:
    """Runs etcd and kube-apiserver, or skips (fails under CI) when they aren't at hand."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("KUBEBUILDER_ASSETS names no folder with kube-apiserver")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kube-apiserver-")))
        etcd_url = f"http://127.0.0.1:{_free_port()}"
        stack.enter_context(_process(folder / "etcd.log", _etcd_command(Path(assets), folder, etcd_url)))
        port = _free_port()
        _write_credentials(folder)
        command = _apiserver_command(Path(assets), folder, etcd_url, port)
        stack.enter_context(_process(folder / "apiserver.log", command))
        target = KubeTarget("real", f"https://127.0.0.1:{port}", folder / "ca.crt", etcd_url=etcd_url)
        _wait_for(lambda: target.call("GET", "/readyz", token=ADMIN)[0] == 200, folder / "apiserver.log")
        _install(target, folder / "apiserver.log")
        yield target


def _etcd_command(assets: Path, folder: Path, url: str) -> list[str]:
    peer_url = f"http://127.0.0.1:{_free_port()}"
    return [
        str(assets / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
    ]


def _apiserver_command(assets: Path, folder: Path, etcd_url: str, port: int) -> list[str]:
    return [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--insecure-port=0",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-key-file={folder / 'server.key'}",
        f"--service-account-signing-key-file={folder / 'server.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
    ]


@contextmanager
def _process(log: Path, command: list[str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _wait_for(done: Any, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            if done():
                return
        except urllib3.exceptions.HTTPError:
            pass  # not listening yet
        if time.monotonic() > deadline:
            raise AssertionError(f"the API server isn't ready: {log.read_text()[-2000:]}")
        time.sleep(0.05)


def _install(target: KubeTarget, log: Path) -> None:
    group = "rbac.authorization.k8s.io"
    (role,) = [manifest for manifest in objects({}) if manifest["kind"] == "ClusterRole"]
    role["metadata"]["name"] = "eni-tasks"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "eni-tasks"},
        "subjects": [{"kind": "User", "name": "service", "apiGroup": group}],
        "roleRef": {"kind": "ClusterRole", "name": "eni-tasks", "apiGroup": group},
    }
    (events,) = [manifest for manifest in objects({}) if manifest["kind"] == "Role"]
    events["metadata"]["name"] = "eni-tasks"
    events_binding = {
        **binding,
        "kind": "RoleBinding",
        "roleRef": {"kind": "Role", "name": "eni-tasks", "apiGroup": group},
    }
    for path, body in (
        (f"/apis/{group}/v1/clusterroles", role),
        (f"/apis/{group}/v1/clusterrolebindings", binding),
        (f"/apis/{group}/v1/namespaces/default/roles", events),
        (f"/apis/{group}/v1/namespaces/default/rolebindings", events_binding),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()),
    ):
        code, answer = target.call("POST", path, body)
        assert code == 201, answer
    # Established, served, and known to RBAC: the service itself can list.
    _wait_for(lambda: target.call("GET", NODES, token=SERVICE)[0] == 200, log)


def _write_credentials(folder: Path) -> None:
    rows = ((ADMIN, "admin", "system:masters"), (SERVICE, "service", "service"), (STRANGER, "stranger", "strangers"))
    (folder / "tokens.csv").write_text("".join(f'{token},{user},{user},"{group}"\n' for token, user, group in rows))
    write_certificates(folder, "kube-apiserver")
