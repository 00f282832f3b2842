"""A TCP proxy on loopback between our processes and one server, so that trouble comes at chosen points.

It can lead to another server from now on, and it can call back right before it forwards a certain request. The process
that sent the request may then be stopped: the server carries the request out, and the answer waits for the process.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

_CHUNK_BYTES = 1 << 16


class Proxy:
    """Forwards connections, in a thread of its own.

    Args:
        port: of the server on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._open: set[asyncio.StreamWriter] = set()
        self._trap: tuple[re.Pattern[bytes], Callable[[int], None]] | None = None
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections, and accept no more."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lead_to(self, port: int, *, cut: bool) -> None:
        """Lead new connections to another server; present ones are closed, or stay with the old one."""
        self._target = port
        if cut:
            self._loop.call_soon_threadsafe(self._cut)

    def set_trap(self, request: re.Pattern[bytes], spring: Callable[[int], None]) -> None:
        """Call back right before the next such request is forwarded, once.

        Args:
            request: found in what one read of the connection gives.
            spring: gets the client's port; called in the proxy's thread.
        """
        self._trap = (request, spring)

    def disarm(self) -> bool:
        """Take the trap away; returns whether it was still set."""
        was_set, self._trap = self._trap is not None, None
        return was_set

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port: int = writer.get_extra_info("peername")[1]
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(self._pump(reader, far_writer, port), self._pump(far_reader, writer, None))
        finally:
            self._open -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int | None) -> None:
        with suppress(OSError):  # cut
            while data := await reader.read(_CHUNK_BYTES):
                if port is not None and (trap := self._trap) and trap[0].search(data):
                    self._trap = None
                    trap[1](port)
                writer.write(data)
                await writer.drain()
        writer.close()

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        self._cut()
        # The pumps see that their connections are gone.
        if rest := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(rest, timeout=2.0)


def owner_of_port(port: int, pids: dict[str, int]) -> str | None:
    """Find the process that holds a local TCP port.

    Args:
        port: of a connection to 127.0.0.1.
        pids: names and ids of the processes in question.

    Returns:
        The name, or None if none of them holds it.
    """
    inode = None
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == f"0100007F:{port:04X}":
            inode = f"socket:[{fields[9]}]"
    for name, pid in pids.items():
        with suppress(OSError):  # it ended meanwhile
            if any(_link(fd) == inode for fd in Path(f"/proc/{pid}/fd").iterdir()):
                return name
    return None


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # closed meanwhile
        return ""
