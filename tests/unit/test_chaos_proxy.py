"""The proxy of the chaos: requests are found before they are forwarded; new connections reach the chosen server."""

from __future__ import annotations

import os
import re
import socket
import socketserver
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from chaos.proxy import Proxy, owner_of_port

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answering(socketserver.StreamRequestHandler):
    """Answers each line with the server's name, and notes what it got."""

    server: Server

    def handle(self) -> None:
        for line in self.rfile:
            self.server.got.append(line)
            self.wfile.write(self.server.name)


class Server(socketserver.ThreadingTCPServer):
    """A server with a name."""

    daemon_threads = True

    def __init__(self, name: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.name, self.got = name, list[bytes]()
        self.port: int = self.server_address[1]


@contextmanager
def serving(name: bytes) -> Iterator[Server]:
    with Server(name) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def old() -> Iterator[Server]:
    with serving(b"old") as server:
        yield server


@pytest.fixture
def proxy(old: Server) -> Iterator[Proxy]:
    with closing(Proxy(old.port)) as proxy:
        yield proxy


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def ask(client: socket.socket, line: bytes = b"who?\n") -> bytes:
    client.sendall(line)
    return client.recv(100)


def test_a_trap_springs_once_before_its_request_is_forwarded(old: Server, proxy: Proxy) -> None:
    sprung: list[tuple[int, list[bytes]]] = []
    proxy.set_trap(re.compile(rb"PATCH \S+/status"), lambda port: sprung.append((port, list(old.got))))
    with connect(proxy) as client:
        for line in (b"GET /status\n", b"PATCH /node/status\n", b"PATCH /node/status\n"):
            assert ask(client, line) == b"old"
        assert sprung == [(client.getsockname()[1], [b"GET /status\n"])]


def test_a_trap_that_was_taken_away_does_not_spring(proxy: Proxy) -> None:
    sprung: list[int] = []
    proxy.set_trap(re.compile(rb"who"), sprung.append)
    proxy.disarm()
    with connect(proxy) as client:
        assert ask(client) == b"old"
    assert sprung == []


@pytest.mark.parametrize(("cut", "present"), [(True, b""), (False, b"old")])
def test_connections_after_the_proxy_leads_elsewhere(proxy: Proxy, *, cut: bool, present: bytes) -> None:
    with serving(b"new") as new, connect(proxy) as client:
        assert ask(client) == b"old"
        proxy.lead_to(new.port, cut=cut)
        with connect(proxy) as later:
            assert ask(later) == b"new"
        try:
            answer = ask(client)
        except ConnectionError:
            answer = b""
        assert answer == present


def test_a_server_that_is_away_closes_the_connection(proxy: Proxy) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy.lead_to(unused.getsockname()[1], cut=True)
        with connect(proxy) as client:
            assert client.recv(1) == b""


def test_the_owner_of_a_port_is_found(proxy: Proxy) -> None:
    with connect(proxy) as client:
        port = client.getsockname()[1]
        assert owner_of_port(port, {"init": 1, "this one": os.getpid()}) == "this one"
    assert owner_of_port(port, {"init": 1}) is None
