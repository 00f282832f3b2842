"""What troubles act on: the sandbox, its processes, Redis, the nodes, and what is to end later."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import redis
import urllib3

from chaos.proxy import Proxy, owner_of_port
from chaos.redis_pair import FIRST, SECOND, RedisPair
from eni_tasks.errors import PermanentError
from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.running import CLUSTER
from eni_tasks.state.keys import Keys

if TYPE_CHECKING:
    import re
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
TRAP_SECONDS = 15.0
RETURN_SECONDS = 3.0  # after etcd was restored: agents notice, and write what they are
SERVERS_OF_REDIS = (FIRST, SECOND)


class Ground:
    """The system under trouble.

    Args:
        sandbox: with its servers running.
        nodes: the fleet.
    """

    def __init__(self, sandbox: Sandbox, nodes: Nodes) -> None:
        self.sandbox, self.nodes = sandbox, nodes
        self.ec2, self.kube, self.children = sandbox.ec2, sandbox.kube, sandbox.children
        self.pair = RedisPair(self.children, sandbox.environment["ENI_TASKS_REDIS_URL"])
        self.proxies = {
            "Redis": self.pair.proxy,
            "EC2": Proxy(_port(sandbox.environment["AWS_ENDPOINT_URL"])),
            "API server": Proxy(_port(self.kube._url)),
        }
        kube_url = f"http://127.0.0.1:{self.proxies['API server'].port}"
        self.environment = {
            **sandbox.environment,
            "ENI_TASKS_REDIS_URL": self.pair.url,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.proxies['EC2'].port}",
            "KUBECONFIG": str(write_kubeconfig(sandbox.folder / "kubeconfig-proxied", kube_url)),
        }
        self.say: Callable[[str], object] = lambda _: None
        # When a process was started or thawed: until then its silence was ours.
        self._runs_since: dict[str, float] = {}
        self.ended: Counter[str] = Counter()  # processes that ended by themselves
        self.happened: Counter[str] = Counter()  # what troubles had prepared
        self._busy: set[str] = set()  # killed, stopped or asked to end: what is to happen next is planned
        self._backups = 0  # of etcd that are still to be restored
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = itertools.count()
        self._caught: SimpleQueue[tuple[str, str, float]] = SimpleQueue()  # by traps: what, the process, for how long
        nodes.meanwhile = self.tick

    def start(self) -> None:
        """Start our own processes."""
        self.kube.set(bookmark_seconds=BOOKMARK_SECONDS)
        for module, count in PROCESSES.items():
            for number in range(count):
                name = f"{module}-{number}"
                probes = {"ENI_TASKS_PROBE_DIR": str(self._probes(name))}
                self.children.start(name, f"workers.{module}", [], {**self.environment, **probes})

        self.pair.follow()

    def close(self) -> None:
        for proxy in self.proxies.values():
            proxy.disarm()
        self.pair.close()
        for name in ("EC2", "API server"):
            self.proxies[name].close()
        self.nodes.close()

    @property
    def redis(self) -> redis.Redis:
        """Leads to the server that serves now."""
        return self.pair.client

    def queue_key(self, queue: str) -> str:
        """The key of Redis under which Celery keeps a queue's messages."""
        return Keys(CLUSTER).queue(queue)

    # -- time --------------------------------------------------------------------------------------
    def later(self, seconds: float, happen: Callable[[], object]) -> None:
        """Let something happen after a while, at the latest when calm returns."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._serial), happen))

    def tick(self, *, all_at_once: bool = False) -> None:
        """Let happen what is due, and start processes again that ended."""
        with suppress(Empty):
            while True:
                what, name, seconds = self._caught.get_nowait()
                self.say(f"SIGSTOP {name} for {seconds:.0f} s: it has sent {what}, and the answer waits")
                self.happened[f"stopped at {what}"] += 1
                self.later(seconds, lambda name=name: self._thaw(name))  # type: ignore[misc]
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
                self.say(f"{name} gave no sign of life for {LIVENESS_SECONDS:.0f} s: it is started again")
                self._again(name)

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
        return time.time() - max(alive.stat().st_mtime, self._runs_since.get(name, 0.0)) if alive.exists() else 0.0

    def _probes(self, name: str) -> Path:
        return self.sandbox.folder / "probes" / name

    # -- processes ---------------------------------------------------------------------------------
    def free(self, *modules: str) -> list[str]:
        """Names of the processes of these modules that are not in trouble already."""
        names = [f"{module}-{number}" for module in modules for number in range(PROCESSES[module])]
        return [name for name in names if name not in self._busy]

    def kill(self, name: str, away_seconds: float) -> None:
        """SIGKILL a child, and start it again after a while.

        Raises:
            RuntimeError: it is dead or stopped already, or has a backup that is to be restored.
        """
        if name in self._busy:
            raise RuntimeError(f"{name} is down already")
        if name == KUBE and self._backups:
            raise RuntimeError("its backup would be lost")
        self._busy.add(name)
        self.children.running[name].kill()
        self.later(away_seconds, lambda: self._again(name))

    def freeze(self, name: str, seconds: float) -> None:
        """Stop a process without ending it, as a starved machine does; then it goes on as if nothing had happened."""
        if self._stop(name):
            self.later(seconds, lambda: self._thaw(name))

    def freeze_at(self, server: str, request: re.Pattern[bytes], what: str, seconds: float) -> None:
        """Stop the process that sends the next such request, before it has the answer.

        Args:
            server: one of `proxies`.
            request: found in the bytes of the request.
            what: the request in words.
            seconds: for how long.
        """

        def spring(port: int) -> None:
            pids = {name: self.children.running[name].pid for name in self.free(*PROCESSES)}
            name = owner_of_port(port, pids)
            if name and self._stop(name):
                self._caught.put((what, name, seconds))

        proxy = self.proxies[server]
        proxy.set_trap(request, spring)
        self.later(TRAP_SECONDS, proxy.disarm)

    def _stop(self, name: str) -> bool:
        self._busy.add(name)
        try:
            self.children.suspend(name)
        except PermanentError:  # it has ended by itself; `tick` sees to it
            self._busy.discard(name)
            return False
        return True

    def _thaw(self, name: str) -> None:
        self.children.resume(name)
        self._runs_since[name] = time.time()
        self._busy.discard(name)

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
        if name in SERVERS_OF_REDIS:
            self.pair.start_again(name)
        else:
            self.children.again(name)
        if name == KUBE:
            self.kube.set(bookmark_seconds=BOOKMARK_SECONDS)
        self._runs_since[name] = time.time()
        self._busy.discard(name)

    # -- data that goes back in time ----------------------------------------------------------------
    def restore_redis(self, seconds: float, away_seconds: float) -> None:
        """Keep a copy of Redis' data, and start Redis on it again after a while."""
        self.pair.back_up()

        def kill() -> None:
            if (name := self.pair.serving) in self._busy:
                return
            self._busy.add(name)
            self.children.running[name].kill()
            self.later(away_seconds, lambda: again(name))

        def again(name: str) -> None:
            self.pair.start_again(name, from_backup=True)
            self._busy.discard(name)
            self.happened["Redis back in time"] += 1
            self.say(f"Redis is back with the data of {seconds + away_seconds:.0f} s ago")

        self.later(seconds, kill)

    def promote_replica(self, seconds: float, *, cut: bool) -> None:
        """Let the replica of Redis lag from now on, and serve after a while."""
        self.pair.stop_following()

        def promote() -> None:
            with suppress(redis.RedisError):  # one of them was killed
                if self.pair.promote(cut=cut):
                    self.happened["replica promoted"] += 1
                    self.say(f"a replica of Redis serves that lags {seconds:.0f} s")

        self.later(seconds, promote)

    def restore_kube(self, seconds: float) -> None:
        """Keep a copy of the objects, and restore it after a while."""
        self.kube.back_up()
        self._backups += 1

        def restore() -> None:
            self._backups -= 1
            try:
                self.kube.restore()
            except (urllib3.exceptions.HTTPError, RuntimeError) as error:
                self.say(f"etcd not restored: {error}")
                return
            self.nodes.restored()
            self.happened["etcd restored"] += 1
            self.say(f"etcd restored from a backup of {seconds:.0f} s ago")
            self.later(RETURN_SECONDS, self.nodes.return_after_restore)

        self.later(seconds, restore)

    # -- knobs -------------------------------------------------------------------------------------
    def turn_ec2(self, seconds: float, **knobs: object) -> None:
        """Turn knobs of EC2 for a while."""
        before = self.ec2.set_knobs()
        self.ec2.set_knobs(**knobs)
        self.later(seconds, lambda: self.ec2.set_knobs(**{name: getattr(type(before)(), name) for name in knobs}))

    def calm(self) -> None:
        """End all trouble."""
        self.ec2.clear_faults()
        for proxy in self.proxies.values():
            proxy.disarm()
        while self._later:
            self.tick(all_at_once=True)
        self.kube.clear_faults()


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def pick(rng: Random, names: list[str]) -> str:
    """One of them, or "" if there is none."""
    return rng.choice(names) if names else ""
