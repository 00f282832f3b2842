"""What the sandbox's two HTTP servers share: sockets, a thread per connection, and an end that cuts them all."""

from __future__ import annotations

import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Listener(ThreadingHTTPServer):
    """Serves in threads of this process, between `start` and `stop`.

    Args:
        address: where it listens; port 0 takes a free one.
        handler: what answers.
    """

    daemon_threads = True
    request_queue_size = 1024  # a fleet of agents, or many workers, connect at once

    def __init__(self, address: tuple[str, int], handler: type[Handler]) -> None:
        super().__init__(address, handler)
        self.url = f"http://{address[0]}:{self.server_address[1]}"
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """End all connections and stop serving."""
        self.shutdown()
        for connection in list(self._connections):
            cut(connection)
        self.server_close()
        self._thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget it."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show what is our own fault; a client that went away is everyday life here."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with keep-alive; subclasses answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self) -> bytes:
        """Read what the client sent."""
        length = int(self.headers.get("Content-Length") or 0)
        return self.rfile.read(length) if length else b""

    def send(self, code: int, content_type: str, body: bytes, extra: str = "") -> None:
        """Answer in one write; the stock helpers would format a date and more for each.

        Args:
            code: the status.
            content_type: of the body.
            body: all of it.
            extra: more header lines, each with its line end.
        """
        head = f"HTTP/1.1 {code} {_PHRASES.get(code, '')}\r\nContent-Type: {content_type}\r\n{extra}"
        self.wfile.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def drop(self) -> None:
        """Cut the connection without an answer."""
        self.close_connection = True
        cut(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the sandbox keeps its own record of requests."""


def cut(connection: socket.socket) -> None:
    """End a connection at once, if it still is one."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is already gone, which is what we want
