"""What Compose starts beside the real API server: installing the definition, and the fleet as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from contract.kube_servers import ADMIN, MERGE_PATCH, NODES, KubeTarget, real_server

from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.ec2.world import build_default_world
from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.kube.schema import definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def api() -> Iterator[KubeTarget]:
    with real_server() as server:
        yield server


@pytest.fixture
def kubeconfig(api: KubeTarget, tmp_path: Path) -> Path:
    """As a server in a container writes it: the right credentials, and an address that is right only in there."""
    path = api.kubeconfig(tmp_path / "admin", ADMIN)
    path.write_text(path.read_text().replace(api.url, "https://127.0.0.1:1"))
    return path


def install(server: str, kubeconfig: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    into = kubeconfig.parent / "config"
    command = [sys.executable, "-m", "eni_tasks.sandbox.kube.installing", "--kubeconfig", str(kubeconfig)]
    command += ["--server", server, "--into", str(into)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False), into


@contextmanager
def keeper(kubeconfig: Path, ec2_url: str, nodes: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "eni_tasks.sandbox.fleet_keeper", "--ec2", ec2_url, "--nodes", str(nodes)]
    command += ["--changes-per-second", "50"]
    with subprocess.Popen(command, env={"KUBECONFIG": str(kubeconfig)}, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def nodes(api: KubeTarget) -> dict[str, dict[str, Any]]:
    return {obj["metadata"]["name"]: obj for obj in api.call("GET", NODES)[1]["items"]}


def uids(api: KubeTarget) -> set[str]:
    return {obj["metadata"]["uid"] for obj in nodes(api).values()}


def until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


def test_the_definition_is_installed_where_there_is_none_and_again(api: KubeTarget, kubeconfig: Path) -> None:
    name = definition()["metadata"]["name"]
    assert api.call("DELETE", f"{DEFINITIONS}/{name}")[0] == 200
    until(lambda: api.call("GET", f"{DEFINITIONS}/{name}")[0] == 404, "it is gone")
    for _ in range(2):
        answer, _into = install(api.url, kubeconfig)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert api.call("GET", NODES)[0] == 200


def test_an_api_server_that_does_not_answer_is_told(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "admin", "https://127.0.0.1:6443")
    answer, _ = install("https://127.0.0.1:1", kubeconfig)
    assert answer.returncode == 1
    assert "no answer from the API server" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_fleet_lives_on_through_restarts(api: KubeTarget, kubeconfig: Path) -> None:
    answer, config = install(api.url, kubeconfig)
    assert answer.returncode == 0, answer.stderr
    with Ec2Server(build_default_world().world) as ec2:
        port = int(ec2.url.rpartition(":")[2])
        with keeper(config, ec2.url, 2) as running:
            until(lambda: nodes(api).keys() == {"node-0000", "node-0001"}, "two nodes are there")
            pool = {"10.0.0.10": {"resource": "eni-1"}, "10.0.0.11": {"resource": "eni-1"}}
            path = f"{NODES}/node-0001"
            # An agent ignores a pool whose interface its status does not show.
            vpc = {"id": "vpc-1", "primary-cidr": "10.0.0.0/16"}
            interface = {"id": "eni-1", "addresses": sorted(pool), "vpc": vpc}
            status = {"status": {"eni": {"enis": {"eni-1": interface}}}}
            assert api.call("PATCH", f"{path}/status", status, content_type=MERGE_PATCH)[0] == 200
            assert api.call("PATCH", path, {"spec": {"ipam": {"pool": pool}}}, content_type=MERGE_PATCH)[0] == 200
            until(lambda: nodes(api)["node-0001"].get("status", {}).get("ipam", {}).get("used"), "pods come")
            running.send_signal(signal.SIGTERM)
            assert running.wait(10) == 0
        before = uids(api)
        with keeper(config, ec2.url, 3):
            until(lambda: nodes(api).keys() == {"node-0000", "node-0001", "node-0002"}, "a third joins them")
        after = uids(api)
        assert before <= after
    with keeper(config, ec2.url, 3) as alone:
        assert alone.wait(20) == 1
        assert alone.stderr
        assert "Traceback" not in alone.stderr.read()
    with Ec2Server(build_default_world().world, port) as ec2, keeper(config, ec2.url, 3):
        until(lambda: not after & uids(api), "none keeps a dead instance")
        instances = {instance.id for instance in ec2.control.view().instances}
        until(lambda: {obj["spec"]["instance-id"] for obj in nodes(api).values()} == instances, "each has its own")
