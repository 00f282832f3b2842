"""The Kubernetes API over HTTP, with chunked watches.

Requests go to `api`; those under `/sandbox/` to the control API (`admin`).
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING

from eni_tasks.sandbox.kube.admin import KubeControl
from eni_tasks.sandbox.kube.api import Api, Request, Response
from eni_tasks.sandbox.kube.store import NodeStore
from eni_tasks.sandbox.kube.watches import IDLE, WatchBroken
from eni_tasks.sandbox.serving import Handler, Listener, Server

if TYPE_CHECKING:
    from collections.abc import Iterator


class KubeServer(Server):
    """The API on a loopback port, in threads of this process.

    Args:
        store: the nodes; a new empty store when not given.
        port: 0 takes a free one.
    """

    def __init__(self, store: NodeStore | None = None, port: int = 0) -> None:
        self.api = Api(store or NodeStore())
        listener = _Listener(("127.0.0.1", port), _Handler)
        listener.api, listener.control = self.api, KubeControl(self.api)
        super().__init__(listener)

    def __exit__(self, *_: object) -> None:
        """End all watches and connections, and stop serving."""
        self.api.watches.stop()
        super().__exit__()


class _Listener(Listener):
    api: Api


class _Handler(Handler):
    server: _Listener

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = Handler.answer  # noqa: N815 - what the base class looks for

    def reply(self, body: bytes) -> None:
        """See `Handler.reply`; a watch is answered line by line."""
        get = self.headers.get
        request = Request(self.command, self.path, body, get("Content-Type", ""), get("Authorization", ""))
        response = self.server.api.answer(request)
        if response.lines is None:
            self._respond(response)
        else:
            self._send_stream(response.lines)

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
