"""The files that probes look at, kept by real processes while Redis goes and comes back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import redis_servers
from processes_under_test import Process, running
from pydantic import SecretStr
from waiting import until

from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.kube.server import KubeServer
from eni_tasks.settings import Settings
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryWorkers

HEAD = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode"}


class Probed:
    """A process and its two files."""

    def __init__(self, process: Process, folder: Path) -> None:
        self.process, self.ready, self._alive = process, folder / "ready", folder / "alive"

    def touched_at(self) -> float:
        return self._alive.stat().st_mtime


def test_processes_serve_while_redis_is_there_and_live_without(tmp_path: Path) -> None:
    with ExitStack() as stack:
        kube = stack.enter_context(KubeServer())
        first = stack.enter_context(ExitStack())
        url = first.enter_context(redis_servers.running())
        port = int(url.rpartition(":")[2].removesuffix("/0"))
        config = str(write_kubeconfig(tmp_path / "kubeconfig", kube.url))

        def start(name: str) -> Probed:
            folder = tmp_path / name
            folder.mkdir()
            environment = {
                "ENI_TASKS_REDIS_URL": url,
                "ENI_TASKS_PROBE_DIR": str(folder),
                "KUBECONFIG": config,
                "AWS_REGION": "eu-west-1",
            }
            return Probed(stack.enter_context(running(folder / "log", f"workers.{name}", **environment)), folder)

        both = [start(name) for name in ("resync", "watcher")]
        for each in both:
            each.process.until(each.ready.exists, "it serves")
            touched = each.touched_at()
            each.process.until(lambda each=each, at=touched: each.touched_at() > at, "its loop turns")

        first.close()
        for each in both:
            each.process.until(lambda each=each: not each.ready.exists(), "it serves no more")
        gone = time.time()
        for each in both:
            each.process.until(lambda each=each: each.touched_at() > gone, "it lives on")

        stack.enter_context(redis_servers.running(port=port))
        for each in both:
            each.process.until(each.ready.exists, "it serves again")
            each.process.until(lambda each=each: abs(each.touched_at() - time.time()) < 10, "its loop turns again")
            assert each.process.end() == 0
            assert not each.ready.exists()


def test_a_node_that_cannot_be_served_makes_no_watcher_unready(tmp_path: Path) -> None:
    """Else, with `maxUnavailable: 0`, the roll-out of the very fix would hang."""
    ready = tmp_path / "ready"
    with ExitStack() as stack:
        kube = stack.enter_context(KubeServer())
        kube.api.store.create({**HEAD, "metadata": {"name": "node"}, "spec": {"instance-id": "i-0123456789abcdef0"}})
        environment = {
            "ENI_TASKS_REDIS_URL": stack.enter_context(redis_servers.running()),
            "ENI_TASKS_PROBE_DIR": str(tmp_path),
            "ENI_TASKS_RESYNC_SECONDS": "1",
            "ENI_TASKS_STUCK_SECONDS": "1",
            "KUBECONFIG": str(write_kubeconfig(tmp_path / "kubeconfig", kube.url)),
            "AWS_REGION": "eu-west-1",
        }
        process = stack.enter_context(running(tmp_path / "log", "workers.watcher", **environment))
        process.until(lambda: "falls_behind" in process.said, "the system falls behind")
        ready.unlink(missing_ok=True)
        process.until(ready.exists, "it is ready at the tick after")
        assert process.end() == 0


def test_workers_of_pods_on_one_node_have_names_of_their_own(tmp_path: Path) -> None:
    """In pods on their node's network both the host's name and the process id are the same: here only the name is."""
    with ExitStack() as stack:
        url = stack.enter_context(redis_servers.running())
        pids = {}
        for pod in ("pod-a", "pod-b"):
            environment = {"ENI_TASKS_REDIS_URL": url, "ENI_TASKS_POD_NAME": pod, "AWS_REGION": "eu-west-1"}
            process = stack.enter_context(running(tmp_path / f"{pod}.log", "workers.resync", **environment))
            pids[pod] = process.pid
        workers = CeleryWorkers(make_app(Settings(redis_url=SecretStr(url))), answer_seconds=1.0)
        names = {f"resync-{pid}@{pod}" for pod, pid in pids.items()}
        until(lambda: workers.queues().keys() == names, "both workers answer under their names")
