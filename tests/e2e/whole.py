"""The whole system in processes of its own, and how tests look at it without disturbing it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
import urllib3
from pydantic import SecretStr
from waiting import until

from eni_tasks.bootstrap import Services
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.sandbox.running import CLUSTER, Sandbox
from eni_tasks.services.status import NodeStatus
from eni_tasks.settings import Settings
from eni_tasks.state.keys import Keys
from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eni_tasks.model.network import NodeName

ROOT = Path(__file__).parents[2]
# A killed worker's nodes are taken over within seconds. Nothing is periodic: no call of a test's count depends on
# when a period begins. That periods come round is shown by `test_log_lines`.
QUICK = {
    "ENI_TASKS_RESYNC_SECONDS": "3600",
    "ENI_TASKS_ORPHAN_INTERVAL_SECONDS": "3600",
    "ENI_TASKS_EC2_TIMEOUT_SECONDS": "2",
    "ENI_TASKS_LEASE_SECONDS": "7",
    "ENI_TASKS_OVERDUE_SECONDS": "4",
    "ENI_TASKS_SETTLE_SECONDS": "0.5",
}


class Silence:
    """Sends nothing: these services only look."""

    def send(self, kind: WorkKind, name: NodeName) -> None:
        raise AssertionError(f"a test that only looks sent {kind} of {name}")


class System:
    """A running sandbox under test."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.fleet, self.ec2, self.kube = sandbox, sandbox.fleet, sandbox.ec2, sandbox.kube
        url = sandbox.environment["ENI_TASKS_REDIS_URL"]
        self.redis = redis.Redis.from_url(url)
        self.services = Services(Settings(cluster=CLUSTER, redis_url=SecretStr(url)), Silence())
        self._keys = Keys(CLUSTER)
        self._earlier_effects: Counter[str] = Counter()
        self._http = urllib3.PoolManager(retries=False, timeout=10.0)

    def close(self) -> None:
        self.services.state.connection.client.close()
        self.redis.close()
        self._http.clear()

    def keep_logs(self) -> Path:
        """Copy what the processes have said so far, since the sandbox removes it; returns the folder."""
        folder = Path(tempfile.mkdtemp(prefix="eni-tasks-failed-"))
        for log in self.sandbox.folder.glob("*.log"):
            shutil.copy(log, folder)
        return folder

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `eni-tasks` against this system."""
        command = [str(Path(sys.executable).parent / "eni-tasks"), *arguments]
        return self._run(command)

    def celery(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Celery's own."""
        return self._run([sys.executable, "-m", "celery", "-A", "workers.app", *arguments])

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        environment = self.sandbox.environment
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )

    def views(self) -> dict[str, NodeStatus]:
        """All nodes as people see them."""
        return {status.node: status for status in self.services.status.nodes()}

    def full(self, count: int) -> bool:
        """Whether that many nodes are known, and all but the odd ones are at size."""
        views = [view for name, view in self.views().items() if name in self.fleet.names]
        return len(views) == count and all(view.ready for view in views)

    def quiet(self) -> bool:
        """Whether no work is left. The orphan collector may wait for a later pass."""
        now_ms = self.services.state.now() * 1000
        for kind in WorkKind:
            for name, due_ms in self.redis.zrange(self._keys.pending(kind), 0, -1, withscores=True):
                if not (name.decode() == Pass.ORPHANS and due_ms > now_ms):
                    return False
        return not self.redis.zcard(self._keys.reads) and self.full(len(self.fleet.names))

    def pool(self, name: str) -> dict[str, Any]:
        """The pool that the object shows."""
        pool: dict[str, Any] = self.fleet.get(name)["spec"].get("ipam", {}).get("pool", {})
        return pool

    def use_more(self, name: str, count: int) -> int:
        """Let pods take `count` more addresses of a node; returns how many are in use then."""
        obj = self.fleet.get(name)
        used = len(obj["status"]["ipam"].get("used", {})) + count
        self.fleet.use(obj, used)
        return used

    def calls(self) -> dict[str, int]:
        """EC2 calls since the last reset."""
        return {action: sum(codes.values()) for action, codes in self.ec2.counts().items()}

    def writes(self) -> dict[str, int]:
        """Writes at the API server since the last reset, without those of agents."""
        log = self.kube.record().log
        ours = [entry for entry in log if entry.verb == "patch"]
        return {part: sum(entry.subresource == part for entry in ours) for part in ("status", "")}

    def effects_since_start(self) -> Counter[str]:
        """EC2 calls that were carried out since the system started: no refusals, no dry runs."""
        return self._earlier_effects + Counter(
            {action: codes.get("OK", 0) for action, codes in self.ec2.counts().items()}
        )

    def reset(self) -> None:
        """Count calls and writes from zero."""
        self._earlier_effects = self.effects_since_start()
        self.ec2.reset_calls()
        self.kube.reset_record()

    def commands(self) -> dict[str, int]:
        """Commands that Redis carried out so far, those within scripts included, by name."""
        stats = self.redis.info("commandstats")
        return {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in stats.items()}

    def tasks(self) -> dict[str, dict[str, Any]]:
        """The tasks that Flower has seen, by id."""
        answer = self._http.request("GET", f"{self.sandbox.flower_url}/api/tasks?limit=100000")
        assert answer.status == 200, answer.data
        tasks: dict[str, dict[str, Any]] = json.loads(answer.data)
        return tasks

    def outcome(self, task_id: str) -> dict[str, Any]:
        """What Flower shows of a task, as soon as it has ended."""

        def ended() -> dict[str, Any] | None:
            task = self.tasks().get(task_id, {})
            return task if task.get("state") in ("SUCCESS", "FAILURE") else None

        found: dict[str, Any] = until(ended, "Flower shows the task's end")
        return found

    def flower_is_up(self) -> bool:
        """Whether Flower's first page shows a worker of each queue."""
        try:
            answer = self._http.request("GET", f"{self.sandbox.flower_url}/workers?json=1")
        except urllib3.exceptions.HTTPError:
            return False  # not listening yet
        rows = json.loads(answer.data)["data"] if answer.status == 200 else []
        return {row["hostname"].partition("-")[0] for row in rows if row["status"]} == set(QUEUES)

    def clean(self) -> bool:
        """No rule of EC2 is broken, and none of our interfaces is left over."""
        assert self.ec2.violations() == []
        assert self.ec2.leftovers(**{"io.cilium/cluster-name": CLUSTER}) == []
        return True


@contextmanager
def running(*, settings: Mapping[str, str] | None = None, **options: Any) -> Iterator[System]:
    """Run a sandbox.

    Args:
        settings: ENI_TASKS_ variables besides QUICK.
        options: of the sandbox.
    """
    with Sandbox(settings={**QUICK, **(settings or {})}, **options) as sandbox:
        system = System(sandbox)
        try:
            yield system
        finally:
            system.close()
