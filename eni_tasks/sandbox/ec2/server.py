"""The sockets: HTTP/1.1 with keep-alive, a thread per connection.

`POST /` is the query protocol. `/sandbox/NAME` calls the method NAME of `Control` with the JSON object
in the body as its arguments, and answers its result as JSON (`admin` is the client of that).
"""

from __future__ import annotations

import inspect
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import msgspec

from eni_tasks.sandbox.ec2.control import Control
from eni_tasks.sandbox.ec2.refusals import Dropped, Refused
from eni_tasks.sandbox.ec2.sandbox import Answer, Ec2Sandbox

if TYPE_CHECKING:
    from eni_tasks.sandbox.ec2.world import World

ADMIN_PATH = "/sandbox/"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Ec2Server:
    """The API on a port, in threads of this process.

    `sandbox`, `control` and `oracle` (through `sandbox`) are at hand for tests in the same process.

    Args:
        world: what there is; an empty one when not given.
        port: 0 takes a free one.
        address: where it listens; loopback, unless others have to reach it.
    """

    def __init__(self, world: World | None = None, port: int = 0, address: str = "127.0.0.1") -> None:
        self.sandbox = Ec2Sandbox(world)
        self.control = Control(self.sandbox)
        self._listener = _Listener((address, port), _Handler)
        self._listener.sandbox = self.sandbox
        self._listener.control = self.control
        self.url = f"http://{address}:{self._listener.server_address[1]}"
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        """Start serving."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End all connections and stop serving."""
        self._listener.shutdown()
        self._listener.end_connections()
        self._listener.server_close()
        self._thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # many workers connect at once
    sandbox: Ec2Sandbox
    control: Control

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
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(ADMIN_PATH):
            self._send(_administer(self.server.control, self.path.removeprefix(ADMIN_PATH), body), "application/json")
            return
        try:
            answer = self.server.sandbox.handle(body.decode(), _caller(self.headers.get("Authorization", "")))
        except Dropped:
            self.close_connection = True
            _cut(self.connection)
            return
        self._send(answer, "text/xml;charset=UTF-8")

    do_GET = do_POST = _answer  # noqa: N815 - names that the base class looks for

    def _send(self, answer: Answer, content_type: str) -> None:
        # One write per answer; the stock helpers would format a date and more for each.
        head = (
            f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, '')}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(answer.body)}\r\n\r\n"
        )
        self.wfile.write(head.encode() + answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the record of calls is kept by the sandbox."""


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is already gone, which is what we want


def _caller(authorization: str) -> str:
    _, _, credential = authorization.partition("Credential=")
    return credential.partition("/")[0]


def _administer(control: Control, name: str, body: bytes) -> Answer:
    method = getattr(control, name, None)
    if name.startswith("_") or not inspect.ismethod(method):
        return Answer(404, f"there is no {name}".encode())
    try:
        arguments = msgspec.json.decode(body or b"{}", type=dict[str, Any])
        return Answer(200, msgspec.json.encode(method(**arguments)))
    except (TypeError, KeyError, Refused, msgspec.MsgspecError) as wrong:
        return Answer(400, f"{name}: {wrong}".encode())
