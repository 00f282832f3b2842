"""The exporter's HTTP: `/metrics` for Prometheus, `/healthz` for probes, and the server below the status page, too.

prometheus_client's own `start_http_server` answers every path with all metrics, so each probe would read the whole
state; and a client that sends nothing would keep its thread.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from eni_tasks.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from prometheus_client.registry import Collector

SOCKET_TIMEOUT_SECONDS = 30


class Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread of its own, so that a slow client delays no other."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = SOCKET_TIMEOUT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing: a line per scrape and probe is noise."""


def make_server(collector: Collector, address: str, port: int) -> Server:
    """Bind the metrics; arguments and errors as of `bind`, and `collector` is what `/metrics` shows."""
    registry = CollectorRegistry()
    registry.register(collector)
    server = bind(address, port)
    server.set_app(_routes(registry))
    return server


def bind(address: str, port: int) -> Server:
    """Listen; after `set_app`, `serve_forever` serves until `shutdown` or a signal.

    Args:
        address: where it listens, IPv4 or IPv6.
        port: 0 takes a free one; `server_port` is its number.

    Raises:
        InvalidInput: nothing can listen there.
    """
    try:
        family, *_, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        kind = type("_Server", (Server,), {"address_family": family})
        server: Server = kind(where[:2], _Handler)
    except OSError as error:
        raise InvalidInput(
            f"The exporter can't listen on {address} port {port}: {error.strerror}. Option --port chooses another for "
            "the metrics, ENI_TASKS_PAGE_PORT for the status page."
        ) from error
    return server


def _routes(registry: CollectorRegistry) -> Any:
    metrics = make_wsgi_app(registry)

    def route(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                answer: Iterable[bytes] = metrics(environ, start_response)
                return answer
            case "/healthz":
                # Whether Redis answers does not matter here: restarting this process would not bring it back.
                start_response("200 OK", [("Content-Type", "text/plain")])
                return [b"ok\n"]
            case _:
                start_response("404 Not Found", [("Content-Type", "text/plain")])
                return [b"There are /metrics and /healthz.\n"]

    return route
