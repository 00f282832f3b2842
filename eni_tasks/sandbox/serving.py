"""What the sandbox's two HTTP servers share: connections, the control API, and their life as processes.

The control API is the same on both servers: a request to `/sandbox/NAME` calls the public method NAME of
the server's control object. The JSON object in the body holds its arguments, the answer is its result.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeVar

import msgspec
import urllib3

CONTROL_PATH = "/sandbox/"
ENDING_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_PARENT_CHECK_SECONDS = 0.5
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
T = TypeVar("T")


class Refusal(Exception):
    """Base of the errors that a simulated API answers with."""


class Dropped(Exception):
    """The connection is to be closed without an answer."""


class Listener(ThreadingHTTPServer):
    """Serves in threads of this process, between `start` and `stop`.

    Args:
        address: where it listens; port 0 takes a free one.
        handler: what answers.
    """

    control: object  # what the control API calls
    daemon_threads = True
    request_queue_size = 1024  # a fleet of agents, or many workers, connect at once

    def __init__(self, address: tuple[str, int], handler: type[Handler]) -> None:
        super().__init__(address, handler)
        self._address = (address[0], self.server_port)
        self.url = f"http://{address[0]}:{self.server_port}"
        self._connections: set[socket.socket] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """End all connections and stop serving."""
        self._stopping = True
        with suppress(OSError):  # the loop waits for a connection: this is the last one
            socket.create_connection(self._address, timeout=1).close()
        self._thread.join()
        for connection in list(self._connections):
            close_now(connection)
        self.server_close()

    def _serve(self) -> None:
        # Unlike `serve_forever`, which looks twenty times a second whether it is to end, and ends that late.
        while not self._stopping:
            self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show errors of the sandbox itself; a client that disconnects is normal."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Server:
    """A simulated API on a port; as a context manager, it serves.

    Args:
        listener: its connections.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.url = listener.url

    def __enter__(self) -> Self:
        """Start serving."""
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End all connections and stop serving."""
        self._listener.stop()


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with keep-alive; subclasses name the methods that they serve, and reply."""

    server: Listener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        """Answer one request, of the control API or of the simulated one."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if self.path.startswith(CONTROL_PATH):
            self.send(*_call_control(self.server.control, self.path.removeprefix(CONTROL_PATH), body))
            return
        try:
            self.reply(body)
        except Dropped:
            self.drop()

    def reply(self, body: bytes) -> None:
        """Answer a request of the simulated API.

        Raises:
            Dropped: the connection is to be closed without an answer.
        """
        raise NotImplementedError

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
        """Close the connection without an answer."""
        self.close_connection = True
        close_now(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing: each server keeps its own record of requests."""


def _call_control(control: object, name: str, body: bytes) -> tuple[int, str, bytes]:
    method = getattr(control, name, None)
    if name.startswith("_") or not inspect.ismethod(method):
        return 404, "text/plain", f"{name}: the control API has no such method".encode()
    try:
        arguments = msgspec.json.decode(body or b"{}", type=dict[str, Any])
        return 200, "application/json", msgspec.json.encode(method(**arguments))
    except (TypeError, ValueError, KeyError, Refusal, msgspec.MsgspecError) as wrong:
        return 400, "text/plain", f"{name}: {wrong}".encode()


def close_now(connection: socket.socket) -> None:
    """Shut a connection down, if it is still open."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side closed it first


class ControlClient:
    """Calls the control API of a running server.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(retries=False)

    def _call(self, name: str, result: type[T] | None, **arguments: Any) -> T:
        """Call one method.

        Args:
            name: of the method.
            result: type of its result.
            **arguments: of the method.

        Raises:
            RuntimeError: the server refuses the call; the text is the server's.
        """
        body = msgspec.json.encode(arguments)
        response = self._pool.request("POST", f"{self._url}{CONTROL_PATH}{name}", body=body, timeout=10.0)
        if response.status != HTTPStatus.OK:
            raise RuntimeError(f"the sandbox at {self._url} refused {response.data.decode()}")
        return msgspec.json.decode(response.data, type=result)


def hold_signals() -> None:
    """Keep SIGTERM and SIGINT pending until they are waited for; to be called before any thread starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)


def announce_and_wait(ready: Mapping[str, Any], *, parent: int | None = None) -> None:
    """Print one line of JSON, then wait for SIGTERM or SIGINT.

    Args:
        ready: what the line says, such as the server's URL.
        parent: the id of the parent process, if its end is to end the wait too.
    """
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    while signal.sigtimedwait(ENDING_SIGNALS, _PARENT_CHECK_SECONDS) is None:
        if parent is not None and os.getppid() != parent:
            return
