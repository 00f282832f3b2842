"""The whole system over a wire that can go silent, on a Redis that can go and come back."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import whole
from wire import Wire

from eni_tasks.bootstrap import broker_prefix
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.running import Sandbox
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

WORKERS = ("ec2", "apiserver", "resync")
PROCESSES = (*WORKERS, "watcher")
# Calls may last long here: a worker that is busy when its day turns bad is what these tests are about.
PATIENT = {"ENI_TASKS_EC2_TIMEOUT_SECONDS": "6", "ENI_TASKS_LEASE_SECONDS": "11"}


class Unsteady(whole.System):
    """The whole system, its bad days, and what each process tells the probes."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        settings = self.services.settings
        self._unacked = f"{broker_prefix(settings)}unacked"
        self.app = make_app(settings)
        self.wire = Wire(urlsplit(sandbox.environment["ENI_TASKS_REDIS_URL"]).port)
        sandbox.environment["ENI_TASKS_REDIS_URL"] = self.wire.url

    def close(self) -> None:
        self.wire.close()
        self.app.close()
        super().close()

    # -- processes ---------------------------------------------------------------------------------
    def start(self, name: str, process: str = "") -> None:
        """Start one process of the system."""
        self.sandbox.environment["ENI_TASKS_PROBE_DIR"] = str(self._probes(process or name))
        self.sandbox.start(name, process)

    def child(self, process: str) -> subprocess.Popen[bytes]:
        """A process of the system."""
        return self.sandbox.children.running[process]

    def ends(self, process: str) -> None:
        """A process is told to end, and does so soon."""
        child = self.sandbox.children.running.pop(process)
        child.terminate()
        assert child.wait(20) == 0

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

    def busy_queues(self) -> set[str]:
        """The queues whose workers have a message in hand."""
        return {json.loads(entry)[2] for entry in self.redis.hvals(self._unacked)}

    # -- work --------------------------------------------------------------------------------------
    def makes_everybody_busy(self, seconds: float) -> None:
        """Let a worker of each queue be within a call that lasts."""
        self.redis.delete(self._unacked)  # of an earlier bad day: acknowledged in vain
        first, second = self.smallest()[:2]
        assign = "AssignPrivateIpAddresses"
        self.ec2.add_faults(Fault(action=assign, delay_seconds=1.0), Fault(action=assign, delay_seconds=seconds))
        self.ec2.add_faults(Fault(action="DescribeNetworkInterfaces", delay_seconds=seconds))
        self.use_more(first, 1)
        self.use_more(second, 1)
        self.kube.set(latency_seconds=seconds)  # before one of the two is published
        CeleryMessages(self.app).send(WorkKind.FLEET, Pass.INVENTORY)
        whole.until(lambda: self.busy_queues() == set(WORKERS), "a worker of each queue is busy", seconds=20)

    def everybody_consumes(self, *, seconds: float) -> float:
        """Let all queues have work; returns the seconds that it took them."""
        self.kube.set(latency_seconds=0.0)
        begun, name = time.monotonic(), self.smallest()[0]
        size, reads = len(self.pool(name)), self.calls().get("DescribeNetworkInterfaces", 0)
        self.use_more(name, 1)
        CeleryMessages(self.app).send(WorkKind.FLEET, Pass.INVENTORY)
        whole.until(lambda: len(self.pool(name)) > size, f"the pool of {name} has grown", seconds=seconds)
        whole.until(lambda: self.calls()["DescribeNetworkInterfaces"] > reads, "EC2 is read", seconds=seconds)
        return time.monotonic() - begun

    def forget(self, name: str) -> None:
        """Delete a node's object."""
        self.fleet.names.remove(name)
        self.fleet._call("DELETE", f"/{name}", None)

    def smallest(self) -> list[str]:
        """The nodes, those first whose pools have grown least."""
        return sorted(self.fleet.names, key=lambda name: len(self.pool(name)))


@contextmanager
def running() -> Iterator[Unsteady]:
    """Run a sandbox whose processes reach their Redis over a wire."""
    with ExitStack() as last:
        settings = whole.QUICK | PATIENT
        sandbox = Sandbox(settings=settings, with_flower=False, start_system=False, lasting_objects=True)
        with sandbox:
            system = Unsteady(sandbox)
            last.callback(system.close)  # after the processes have ended: they need Redis for that
            for name in PROCESSES:
                system.start(name)
            yield system
