"""A worker that ends by an error says so in its exit code; while Redis refuses to serve, it does not end."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
import redis
import redis_servers
from processes_under_test import running
from raw_messages import GOOD

from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.state.keys import Keys

if TYPE_CHECKING:
    from pathlib import Path


WITH_A_BUG = """
from eni_tasks.cli.processes import run_worker
from eni_tasks.tasks.worker import TaskConsumer

def create_task_handler(self):
    raise RuntimeError("a bug")

TaskConsumer.create_task_handler = create_task_handler
run_worker(["resync"])
"""
REFUSALS = {
    "READONLY": ("replicaof 127.0.0.1 1", "replicaof no one"),
    "OOM": ("config set maxmemory 1", "config set maxmemory 0"),
    "NOREPLICAS": ("config set min-replicas-to-write 1", "config set min-replicas-to-write 0"),
}


def environment(folder: Path, url: str) -> dict[str, str]:
    return {
        "ENI_TASKS_REDIS_URL": url,
        "ENI_TASKS_PROBE_DIR": str(folder),
        "KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", "http://127.0.0.1:9")),
        "AWS_REGION": "eu-west-1",
    }


def test_c09_a_bug_that_ends_a_worker_shows_in_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "worker_with_a_bug.py").write_text(WITH_A_BUG)
    with (
        redis_servers.running() as url,
        running(tmp_path / "log", "worker_with_a_bug", cwd=tmp_path, **environment(tmp_path, url)) as worker,
    ):
        assert worker.popen.wait(60) == 1, worker.said
        assert "a bug" in worker.said


@pytest.mark.parametrize("answer", REFUSALS)
def test_c09_a_worker_waits_while_redis_refuses(tmp_path: Path, answer: str) -> None:
    refuse, serve = REFUSALS[answer]
    ready, paused = tmp_path / "ready", Keys("default").switches
    with (
        redis_servers.running() as url,
        redis.Redis.from_url(url) as client,
        running(tmp_path / "log", "workers.resync", **environment(tmp_path, url)) as worker,
    ):
        worker.until(ready.exists, "it serves")
        worker.until(client.pubsub_numpat, "it listens for remote control, and is at rest")
        client.execute_command(*refuse.split())
        if answer != "OOM":  # then an idle worker writes nothing: only a new connection is refused
            worker.until(lambda: not ready.exists(), "it serves no more")
        else:
            worker.until(lambda: "broker_refused" in worker.said, "a refused refresh is named")
            time.sleep(3)  # kombu tries each second
            assert worker.said.count("broker_refused") == 1
            client.client_kill_filter(_type="normal", skipme=True)
        worker.until(lambda: "Cannot connect to redis://" in worker.said and answer in worker.said, "it says why")
        assert worker.said.count("Connection to broker lost") == 1, "no connection counts that takes no writes"
        client.execute_command(*serve.split())
        worker.until(ready.exists, "it serves again")
        client.lpush(Keys("default").queue("resync"), json.dumps(GOOD))
        worker.until(lambda: client.hexists(paused, "pause"), "a message is served")
        assert "Unrecoverable" not in worker.said
        assert "Traceback" not in worker.said
        assert worker.end() == 0
