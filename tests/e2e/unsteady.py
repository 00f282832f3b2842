"""The whole system over wires that can go silent or hold answers, on a Redis that can go and come back."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import whole
from waiting import until
from wire import Wire

from eni_tasks.bootstrap import broker_prefix
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.running import Sandbox
from eni_tasks.services.work import Work
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

END_SECONDS = 60.0  # a process that was asked to end may take so long on a busy machine
WORKERS = ("ec2", "apiserver", "resync")
PROCESSES = (*WORKERS, "watcher")
# Calls may last long here: a worker that is busy when its day turns bad is what these tests are about.
PATIENT = {
    "ENI_TASKS_EC2_TIMEOUT_SECONDS": "6",
    "ENI_TASKS_LEASE_SECONDS": "11",
    # After a restart of Redis no fact counts until it is read again, and the next periodic read does that.
    "ENI_TASKS_RESYNC_SECONDS": "10",
}


class Unsteady(whole.System):
    """The whole system, its bad days, and what each process shows the probes.

    All processes reach Redis over `wire` and EC2 over `ec2_wire`, the publishing worker the API server over
    `kube_wire`. The tests and the agents reach each server directly.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        settings, environment = self.services.settings, sandbox.environment
        self._unacked = f"{broker_prefix(settings)}unacked"
        self.app = make_app(settings)
        self._work = Work(self.services.state, CeleryMessages(self.app), self.services.counters)
        self.wire = Wire(_port(environment["ENI_TASKS_REDIS_URL"]))
        self.ec2_wire = Wire(_port(environment["AWS_ENDPOINT_URL"]))
        self.kube_wire = Wire(_port(sandbox.kube._url))
        environment["ENI_TASKS_REDIS_URL"] = self.wire.url
        environment["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{self.ec2_wire.port}"
        self._kubeconfig = environment["KUBECONFIG"]
        url = f"http://127.0.0.1:{self.kube_wire.port}"
        self._kubeconfig_of_apiserver = str(write_kubeconfig(sandbox.folder / "kubeconfig-apiserver", url))

    def close(self) -> None:
        for wire in (self.wire, self.ec2_wire, self.kube_wire):
            wire.close()
        self.app.close()
        super().close()

    def comes_to_rest(self) -> None:
        """End what an earlier test may have left, and wait until no work is left."""
        self.answers()
        self.ec2.clear_faults()
        self.ec2.set_knobs(latency_seconds={})
        until(lambda: self.ready(*PROCESSES) and self.quiet(), "all processes serve, and no work is left")

    # -- processes ---------------------------------------------------------------------------------
    def start(self, name: str, process: str = "") -> None:
        """Start one process of the system."""
        environment = self.sandbox.environment
        environment["ENI_TASKS_PROBE_DIR"] = str(self._probes(process or name))
        environment["KUBECONFIG"] = self._kubeconfig_of_apiserver if name == "apiserver" else self._kubeconfig
        self.sandbox.start(name, process)

    @contextmanager
    def caller(self, key: str) -> Iterator[None]:
        """Let EC2 know the processes that are started meanwhile by this access key."""
        environment = self.sandbox.environment
        own = environment["AWS_ACCESS_KEY_ID"]
        environment["AWS_ACCESS_KEY_ID"] = key
        try:
            yield
        finally:
            environment["AWS_ACCESS_KEY_ID"] = own

    def child(self, process: str) -> subprocess.Popen[bytes]:
        """A process of the system."""
        return self.sandbox.children.running[process]

    def ends(self, process: str) -> None:
        """Ask a process to end, which it does soon."""
        child = self.sandbox.children.running.pop(process)
        child.terminate()
        assert child.wait(END_SECONDS) == 0

    def said(self, process: str, word: str) -> int:
        """How often a process has said something so far."""
        return (self.sandbox.folder / f"{process}.log").read_text().count(word)

    def ready(self, *processes: str) -> bool:
        """Whether all these processes say that they serve."""
        return all((self._probes(process) / "ready").exists() for process in processes)

    def silent_seconds(self, process: str) -> float:
        """How long ago a process gave its last sign of life."""
        return time.time() - (self._probes(process) / "alive").stat().st_mtime

    def _probes(self, process: str) -> Path:
        return self.sandbox.folder / f"probes-{process}"

    # -- Redis -------------------------------------------------------------------------------------
    def redis_goes_away(self, *, keeps_its_data: bool) -> None:
        """Kill Redis."""
        if keeps_its_data:
            self.redis.save()
        self.child("redis").kill()
        self.child("redis").wait()

    def redis_comes_back(self) -> None:
        """Start Redis where it was."""
        self.sandbox.children.again("redis")

    # -- work --------------------------------------------------------------------------------------
    def makes_all_workers_busy(self) -> None:
        """Let a worker of each queue wait for the answer of a call, until `answers`."""
        earlier = set(self.redis.hkeys(self._unacked))  # of a Redis that came back: acknowledged in vain

        def busy_queues() -> set[str]:
            taken = self.redis.hgetall(self._unacked)
            return {json.loads(entry)[2] for tag, entry in taken.items() if tag not in earlier}

        first, second = self.smallest()[:2]
        self.kube_wire.hold_answers()
        self.use_more(first, 1)
        until(lambda: "apiserver" in busy_queues(), "a worker waits for the API server")
        self.ec2_wire.hold_answers()
        self.use_more(second, 1)
        self._work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
        until(lambda: busy_queues() == set(WORKERS), "a worker of each queue is busy")

    def answers(self) -> None:
        """Let EC2 and the API server answer."""
        self.ec2_wire.release_answers()
        self.kube_wire.release_answers()

    def all_queues_are_served(self) -> float:
        """Let all queues have work; returns the seconds that it took them."""
        self.answers()
        begun, name = time.monotonic(), self.smallest()[0]
        size, reads = len(self.pool(name)), self.calls().get("DescribeNetworkInterfaces", 0)
        self.use_more(name, 1)
        self._work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
        until(lambda: len(self.pool(name)) > size, f"the pool of {name} has grown")
        until(lambda: self.calls().get("DescribeNetworkInterfaces", 0) > reads, "EC2 is read")
        return time.monotonic() - begun

    def claimed(self, kind: WorkKind) -> list[str]:
        """The nodes whose work is claimed."""
        names = [name.decode() for name in self.redis.zrange(self._keys.pending(kind), 0, -1)]
        return [name for name in names if self.redis.hexists(self._keys.work(kind, name), "lease")]

    def forget(self, name: str) -> None:
        """Delete a node's object."""
        self.fleet.names.remove(name)
        self.fleet._call("DELETE", f"/{name}", None)

    def smallest(self) -> list[str]:
        """The nodes, those first whose pools have grown least."""
        return sorted(self.fleet.names, key=lambda name: len(self.pool(name)))


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port
    return port


@contextmanager
def running(**settings: str) -> Iterator[Unsteady]:
    """Run a sandbox whose processes reach their servers over wires.

    Args:
        settings: ENI_TASKS_ variables besides QUICK and PATIENT.
    """
    with ExitStack() as last:
        sandbox = Sandbox(
            settings=whole.QUICK | PATIENT | settings, with_flower=False, start_system=False, lasting_objects=True
        )
        with sandbox:
            system = Unsteady(sandbox)
            last.callback(system.close)  # after the processes have ended: they need Redis for that
            for name in PROCESSES:
                system.start(name)
            yield system
