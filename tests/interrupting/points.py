"""The points at which a process can die with the world around it being different: before each of its writes.

What a process does between two messages to the outside no other process can see, so that dying after one is
dying before the next. Reads change nothing and are no points. Hooked in where the bytes leave: a write
that is added later is a point by itself.
"""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import redis.connection
import urllib3.connectionpool

from eni_tasks.state.connection import _script_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

_READS = frozenset(
    {"AUTH", "CLIENT", "EXISTS", "GET", "HELLO", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN"}
    | {"MGET", "PING", "SCRIPT", "SELECT", "TIME", "TYPE", "XRANGE", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE"}
    | {"HVALS", "ZSCORE"}
)
_COMMAND = re.compile(rb"\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n(?:\$\d+\r\n([^\r]*)\r\n)?")


class Points:
    """Counts the points of this process, and kills it at one of them.

    Args:
        kill_at: the number of the fatal point, from 1.
        report_to: file descriptor that gets a line per point.
    """

    def __init__(self, kill_at: int, report_to: int) -> None:
        self._kill_at = kill_at
        self._report_to = report_to
        self._count = 0
        self._scripts = {digest: name for name, (digest, _) in _script_texts().items()}

    def hook_in(self) -> None:
        """Watch all that leaves this process from now on."""
        send, ask = redis.connection.AbstractConnection.send_packed_command, urllib3.HTTPConnectionPool.urlopen

        def send_packed_command(connection: Any, command: Any, *args: Any, **options: Any) -> Any:
            if words := self._writes(command):
                self.reach(f"Redis: {', '.join(words)}")
            return send(connection, command, *args, **options)

        def urlopen(pool: Any, method: str, url: str, body: Any = None, *args: Any, **options: Any) -> Any:
            if method not in ("GET", "HEAD") and (what := _mutation(method, url, body)):
                self.reach(what)
            return ask(pool, method, url, body, *args, **options)

        redis.connection.AbstractConnection.send_packed_command = send_packed_command  # type: ignore[method-assign]
        urllib3.HTTPConnectionPool.urlopen = urlopen  # type: ignore[method-assign]

    def reach(self, what: str) -> None:
        """Come to a point that is no message."""
        self._count += 1
        os.write(self._report_to, f"{what}\n".encode())
        if self._count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _writes(self, packed: bytes | Iterable[bytes]) -> list[str]:
        data = packed if isinstance(packed, bytes) else b"".join(bytes(part) for part in packed)
        found = [(match[1].decode().upper(), (match[2] or b"").decode()) for match in _COMMAND.finditer(data)]
        return [self._scripts.get(first, word) for word, first in found if word not in _READS]


def _mutation(method: str, url: str, body: Any) -> str:
    """What a request changes, "" if nothing."""
    if url == "/" and method == "POST":
        text = body.decode() if isinstance(body, bytes) else str(body or "")
        action = parse_qs(text).get("Action", ["?"])[0]
        return "" if action.startswith("Describe") else f"EC2: {action}"
    return f"API: {method} {url}"
