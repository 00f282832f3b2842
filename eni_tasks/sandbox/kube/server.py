"""The sockets: HTTP/1.1 with keep-alive, chunked watches, a thread per connection.

Requests go to `api`; paths under `/sandbox/` turn the knobs and read the record (`admin` is their client).
"""

from __future__ import annotations

import select
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import msgspec

from eni_tasks.sandbox.kube.api import Api, Dropped, Request, Response
from eni_tasks.sandbox.kube.knobs import Fault
from eni_tasks.sandbox.kube.store import NodeStore
from eni_tasks.sandbox.kube.watches import IDLE, WatchBroken

if TYPE_CHECKING:
    from collections.abc import Iterator

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class KubeServer:
    """The API on a loopback port, in threads of this process.

    Args:
        store: the nodes; a new empty store when not given.
        port: 0 takes a free one.
    """

    def __init__(self, store: NodeStore | None = None, port: int = 0) -> None:
        self.api = Api(store or NodeStore())
        self._listener = _Listener(("127.0.0.1", port), _Handler)
        self._listener.api = self.api
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        """Starts serving."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all connections and stops serving."""
        self._listener.shutdown()
        self.api.watches.stop()
        self._listener.end_connections()
        self._listener.server_close()
        self._thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # A fleet of agents connects at once.
    request_queue_size = 1024
    api: Api

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for connection in list(self._connections):
            _cut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that went away is everyday life here; anything else is our own fault and shown.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if self.path.startswith("/sandbox/"):
            self._send(_administer(self.server.api, self.command, self.path, body))
            return
        get = self.headers.get
        request = Request(self.command, self.path, body, get("Content-Type", ""), get("Authorization", ""))
        try:
            response = self.server.api.answer(request)
        except Dropped:
            self._drop()
            return
        if response.lines is None:
            self._send(response)
        else:
            self._send_stream(response.lines)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - names that the base class looks for

    def _send(self, response: Response) -> None:
        # One write per answer; the stock helpers would format a date and more for each.
        head = (
            f"HTTP/1.1 {response.code} {_PHRASES.get(response.code, '')}\r\nContent-Type: {response.content_type}\r\n"
        )
        if response.retry_after_seconds is not None:
            head += f"Retry-After: {response.retry_after_seconds}\r\n"
        head += f"Content-Length: {len(response.body)}\r\n\r\n"
        self.wfile.write(head.encode() + response.body)

    def _send_stream(self, lines: Iterator[bytes]) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for chunk in lines:
                if chunk != IDLE:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                elif self._client_left():
                    self.close_connection = True
                    return
            self.wfile.write(b"0\r\n\r\n")
        except WatchBroken:
            self._drop()

    def _client_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _drop(self) -> None:
        self.close_connection = True
        _cut(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Says nothing: the record of requests is in `knobs`."""


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is already gone, which is what we want


def _administer(api: Api, method: str, path: str, body: bytes) -> Response:  # noqa: C901 - a table
    what = path.removeprefix("/sandbox/")
    match method, what:
        case "GET", "knobs":
            return Response(200, msgspec.json.encode(api.knobs))
        case "POST", "knobs":
            merged = msgspec.to_builtins(api.knobs) | msgspec.json.decode(body)
            for field, value in merged.items():
                setattr(api.knobs, field, value)
        case "POST", "faults":
            api.faults.add(msgspec.json.decode(body, type=list[Fault]))
        case "DELETE", "faults":
            api.faults.clear()
        case "POST", "break-watches":
            api.watches.break_all()
        case "POST", "silence-watches":
            api.watches.silence_all()
        case "POST", "compact":
            api.store.compact()
        case "GET", "requests":
            record = {"counts": api.requests.counts(), "log": api.requests.log()}
            return Response(200, msgspec.json.encode(record))
        case "DELETE", "requests":
            api.requests.reset()
        case _:
            return Response(404, b'"no such knob"')
    return Response(200, b"{}")
