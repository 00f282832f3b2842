"""The Kubernetes API over HTTP, with chunked watches.

Requests go to `api`; paths under `/sandbox/` turn the knobs and read the record (`admin` is their client).
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Self

import msgspec

from eni_tasks.sandbox.kube.api import Api, Dropped, Request, Response
from eni_tasks.sandbox.kube.knobs import Fault
from eni_tasks.sandbox.kube.store import NodeStore
from eni_tasks.sandbox.kube.watches import IDLE, WatchBroken
from eni_tasks.sandbox.listening import Handler, Listener

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        self.url = self._listener.url

    def __enter__(self) -> Self:
        """Starts serving."""
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all connections and stops serving."""
        self.api.watches.stop()
        self._listener.stop()


class _Listener(Listener):
    api: Api


class _Handler(Handler):
    server: _Listener

    def _answer(self) -> None:
        body = self.body()
        if self.path.startswith("/sandbox/"):
            self._respond(_administer(self.server.api, self.command, self.path, body))
            return
        get = self.headers.get
        request = Request(self.command, self.path, body, get("Content-Type", ""), get("Authorization", ""))
        try:
            response = self.server.api.answer(request)
        except Dropped:
            self.drop()
            return
        if response.lines is None:
            self._respond(response)
        else:
            self._send_stream(response.lines)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - names that the base class looks for

    def _respond(self, response: Response) -> None:
        wait = response.retry_after_seconds
        extra = "" if wait is None else f"Retry-After: {wait}\r\n"
        self.send(response.code, response.content_type, response.body, extra)

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
            self.drop()

    def _client_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)


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
