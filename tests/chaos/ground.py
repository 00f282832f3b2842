"""What troubles act on: the sandbox, its processes, Redis, the nodes, and what is to end later."""

from __future__ import annotations

import heapq
import itertools
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from chaos.agents import Nodes
    from eni_tasks.sandbox.running import Sandbox

# Two of those that may be doubled: what one loses the other must take over.
PROCESSES = {"watcher": 2, "ec2": 2, "apiserver": 2, "resync": 1}
# As in the chart; a process that is silent for a third of that is in trouble.
LIVENESS_SECONDS = 90.0
DEAF_SECONDS = 30.0
KUBE = "kubernetes-api"
BOOKMARK_SECONDS = 1.0  # below the time after which our watchers take a silent watch for dead
GRACE_SECONDS = 20.0


class Ground:
    """The system under trouble.

    Args:
        sandbox: with its servers running.
        nodes: the fleet.
    """

    def __init__(self, sandbox: Sandbox, nodes: Nodes) -> None:
        self.sandbox, self.nodes = sandbox, nodes
        self.ec2, self.kube, self.children = sandbox.ec2, sandbox.kube, sandbox.children
        self.redis = redis.Redis.from_url(sandbox.environment["ENI_TASKS_REDIS_URL"], socket_timeout=10)
        self.ended: Counter[str] = Counter()  # processes that ended without being killed
        self._busy: set[str] = set()  # killed, frozen or asked to end: a later step starts them again
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = itertools.count()
        nodes.meanwhile = self.tick

    def start(self) -> None:
        """Start our own processes."""
        self.kube.set(bookmark_seconds=BOOKMARK_SECONDS)
        for module, count in PROCESSES.items():
            for number in range(count):
                name = f"{module}-{number}"
                probes = {"ENI_TASKS_PROBE_DIR": str(self._probes(name))}
                self.children.start(name, f"workers.{module}", [], {**self.sandbox.environment, **probes})

    def close(self) -> None:
        self.redis.close()
        self.nodes.close()

    # -- time --------------------------------------------------------------------------------------
    def later(self, seconds: float, happen: Callable[[], object]) -> None:
        """Let something happen after a while, at the latest when calm returns."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._serial), happen))

    def tick(self, *, all_at_once: bool = False) -> None:
        """Let happen what is due, and start processes again that ended."""
        while self._later and (all_at_once or self._later[0][0] <= time.monotonic()):
            heapq.heappop(self._later)[2]()
        for name in self.children.dead():
            if name not in self._busy:
                code = self.children.running[name].returncode
                self.ended[f"{name.rpartition('-')[0] or name} (exit code {code})"] += 1
                self.children.again(name)
        for name in self.free(*PROCESSES):
            if self._silence_seconds(name) > LIVENESS_SECONDS:
                self.ended[f"{name.rpartition('-')[0]} (restarted by its liveness probe)"] += 1
                self.children.again(name)

    def deaf(self) -> list[str]:
        """Processes that do not say that they live and serve."""
        found = []
        for name in self.free(*PROCESSES):
            silence_seconds = self._silence_seconds(name)
            if silence_seconds > DEAF_SECONDS or not (self._probes(name) / "ready").exists():
                found.append(f"{name} does not serve, and gave its last sign of life {silence_seconds:.0f} s ago")
        return found

    def _silence_seconds(self, name: str) -> float:
        alive = self._probes(name) / "alive"
        return time.time() - alive.stat().st_mtime if alive.exists() else 0.0

    def _probes(self, name: str) -> Path:
        return self.sandbox.folder / "probes" / name

    # -- processes ---------------------------------------------------------------------------------
    def free(self, *modules: str) -> list[str]:
        """Names of the processes of these modules that no trouble has in hand."""
        names = [f"{module}-{number}" for module in modules for number in range(PROCESSES[module])]
        return [name for name in names if name not in self._busy]

    def kill(self, name: str, away_seconds: float) -> None:
        """SIGKILL a child, and start it again after a while."""
        self._busy.add(name)
        self.children.running[name].kill()
        self.later(away_seconds, lambda: self._again(name))

    def freeze(self, name: str, seconds: float) -> None:
        """Stop a process without ending it, as a starved machine does; then it goes on as if nothing had happened."""
        self._busy.add(name)
        child = self.children.running[name]
        child.send_signal(signal.SIGSTOP)

        def thaw() -> None:
            child.send_signal(signal.SIGCONT)
            self._busy.discard(name)

        self.later(seconds, thaw)

    def end(self, name: str) -> None:
        """Ask a process to end, as a rollout does; what doesn't end within the grace is killed and counted."""
        self._busy.add(name)
        child = self.children.running[name]
        child.terminate()
        asked_at = time.monotonic()

        def look() -> None:
            late = time.monotonic() - asked_at > GRACE_SECONDS
            if child.poll() is None and not late:
                time.sleep(0.05)
                self.later(0.2, look)
                return
            if late:
                self.ended[f"{name.rpartition('-')[0]} (deaf to SIGTERM for {GRACE_SECONDS} s)"] += 1
            self._again(name)

        self.later(0.2, look)

    def _again(self, name: str) -> None:
        self.children.again(name)
        if name == KUBE:
            self.kube.set(bookmark_seconds=BOOKMARK_SECONDS)
        self._busy.discard(name)

    # -- knobs -------------------------------------------------------------------------------------
    def turn_ec2(self, seconds: float, **knobs: object) -> None:
        """Turn knobs of EC2 for a while."""
        before = self.ec2.set_knobs()
        self.ec2.set_knobs(**knobs)
        self.later(seconds, lambda: self.ec2.set_knobs(**{name: getattr(type(before)(), name) for name in knobs}))

    def calm(self) -> None:
        """End all trouble."""
        self.ec2.clear_faults()
        while self._later:
            self.tick(all_at_once=True)
        self.kube.clear_faults()


def pick(rng: Random, names: list[str]) -> str:
    """One of them, or "" if there is none."""
    return rng.choice(names) if names else ""
