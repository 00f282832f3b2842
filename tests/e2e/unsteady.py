"""The whole system over a wire that can go silent, on a Redis that can go and come back."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import whole

from eni_tasks.sandbox.running import Sandbox

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

WORKERS = ("ec2", "apiserver", "resync")
# Calls may last long here: a worker that is busy when its day turns bad is what these tests are about.
PATIENT = {"ENI_TASKS_EC2_TIMEOUT_SECONDS": "12", "ENI_TASKS_LEASE_SECONDS": "17"}


class Link:
    """One connection over the wire."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.speaks = True
        self._ends = (near, far)
        for here, there in ((near, far), (far, near)):
            threading.Thread(target=self._pump, args=(here, there), daemon=True).start()

    def cut(self) -> None:
        """End it at both ends."""
        for end in self._ends:
            with suppress(OSError):  # it has ended by itself
                end.shutdown(socket.SHUT_RDWR)

    def _pump(self, here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):  # cut off
            while data := here.recv(1 << 16):
                if self.speaks:
                    there.sendall(data)
        if self.speaks:
            self.cut()


class Wire:
    """Forwards connections to a port of this machine, until it is told to let them hang."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._links: list[Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._thread = threading.Thread(target=self._accept, name="wire")
        self._thread.start()

    def silence(self) -> None:
        """Let all present connections hang half-open: never closed, and never another byte. New ones work."""
        for link in self._links:
            link.speaks = False

    def close(self) -> None:
        """Cut all connections off."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for link in self._links:
            link.cut()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was shut down
            while True:
                near, _ = self._listener.accept()
                try:
                    self._links.append(Link(near, socket.create_connection(self._target)))
                except ConnectionRefusedError:
                    near.close()


class Unsteady(whole.System):
    """The whole system, its bad days, and what each process tells the probes."""

    wire: Wire

    def start(self, name: str, process: str = "") -> None:
        """Start one process of the system."""
        self.sandbox.environment["ENI_TASKS_PROBE_DIR"] = str(self._probes(process or name))
        self.sandbox.start(name, process)

    def child(self, process: str) -> subprocess.Popen[bytes]:
        """A process of the system."""
        return self.sandbox.children.running[process]

    def log(self, process: str) -> str:
        """What a process has said so far."""
        return (self.sandbox.folder / f"{process}.log").read_text()

    def ready(self, process: str) -> bool:
        """Whether a process says that it is ready."""
        return (self._probes(process) / "ready").exists()

    def silent_seconds(self, process: str) -> float:
        """How long ago a process gave its last sign of life."""
        return time.time() - (self._probes(process) / "alive").stat().st_mtime

    def redis_goes_away(self, *, with_its_data: bool) -> None:
        """Kill Redis; its data are back with it, or lost."""
        if with_its_data:
            self.redis.save()
        self.child("redis").kill()
        self.child("redis").wait()

    def redis_comes_back(self) -> None:
        """Start Redis where it was."""
        self.sandbox.children.again("redis")

    def grows(self, name: str, *, seconds: float) -> float:
        """Let a pod take an address of a node; returns the seconds until its pool had grown."""
        begun, size = time.monotonic(), len(self.pool(name))
        self.use_more(name, 1)
        whole.until(lambda: len(self.pool(name)) > size, f"the pool of {name} has grown", seconds=seconds)
        return time.monotonic() - begun

    def _probes(self, process: str) -> Path:
        return self.sandbox.folder / f"probes-{process}"


@contextmanager
def running() -> Iterator[Unsteady]:
    """Run a sandbox whose processes reach their Redis over a wire; the caller starts them."""
    with ExitStack() as last, Sandbox(settings=whole.QUICK | PATIENT, with_flower=False, start_system=False) as sandbox:
        system = Unsteady(sandbox)
        last.callback(system.close)
        system.wire = Wire(urlsplit(sandbox.environment["ENI_TASKS_REDIS_URL"]).port)
        last.callback(system.wire.close)
        sandbox.environment["ENI_TASKS_REDIS_URL"] = system.wire.url
        yield system
