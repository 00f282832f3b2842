"""The status page over HTTP: which path shows what, and what a browser may do with it.

Nothing is loaded but our own style sheet, no script runs, and no other page may frame it. Links are relative, so that
it can be served below any path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.errors import InvalidInput, NodeGone, StateUnavailable
from eni_tasks.exporter.page.kept import Kept
from eni_tasks.exporter.page.links import Links
from eni_tasks.exporter.page.rendering import STYLE, Pages, clock
from eni_tasks.exporter.page.views import Query
from eni_tasks.exporter.serving import Server, bind
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import node_name
from eni_tasks.observability.logs import logger
from eni_tasks.services.sentences import sentence
from eni_tasks.services.status import FleetStatus, NodeDetails, NodePlan, Status
from eni_tasks.settings import Settings
from eni_tasks.state import State
from eni_tasks.state.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

KEPT_SECONDS = 3.0
EVENTS_COUNT = 15

HEADERS = [
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
]
HTML, CSS = "text/html; charset=utf-8", "text/css; charset=utf-8"


def make_page_server(state: State, status: Status, queues: Sequence[str], settings: Settings) -> Server:
    """Listen where the settings say; `serve_forever` then serves until `shutdown` or a signal.

    Args:
        state: for the latest events.
        status: the fleet and its nodes.
        queues: names of the Celery queues.
        settings: where it listens, the cluster's name, and where Flower and Grafana are.

    Raises:
        InvalidInput: nothing can listen there.
    """
    server = bind(settings.page_address, settings.page_port)
    loopback = ipaddress.ip_address(str(server.server_address[0])).is_loopback
    server.set_app(StatusPage(state, status, queues, settings, loopback=loopback))
    return server


class Answer(NamedTuple):
    """What a request gets."""

    status: HTTPStatus
    body: str | bytes
    kind: str = HTML


class StatusPage:
    """Answers requests, as a WSGI application.

    Args:
        state: for the latest events.
        status: the fleet and its nodes.
        queues: names of the Celery queues.
        settings: the cluster's name, and where Flower and Grafana are.
        loopback: it is served at loopback, and so under no other name: another site's name that leads here (DNS
            rebinding) would let that site's scripts read the pages through a visitor's browser.
    """

    def __init__(
        self, state: State, status: Status, queues: Sequence[str], settings: Settings, *, loopback: bool
    ) -> None:
        self._state = state
        self._status = status
        self._queues = queues
        self._loopback = loopback
        self._pages = Pages(Links(settings.flower_url, settings.grafana_url, settings.cluster))
        self._fleets: Kept[tuple[FleetStatus, list[Event]]] = Kept(KEPT_SECONDS)
        self._nodes: Kept[tuple[NodeDetails, NodePlan | None]] = Kept(KEPT_SECONDS)
        self._answered_at: float | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        answer = self._answer(environ)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        headers = [("Content-Type", answer.kind), ("Content-Length", str(len(body))), *HEADERS]
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "GET, HEAD"))
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
        root = "../" * (path.count("/") - 1) or "./"
        if self._loopback and not _is_loopback(environ.get("HTTP_HOST", "")):
            return self._say(
                HTTPStatus.MISDIRECTED_REQUEST,
                root,
                "Ask for it as localhost",
                "The status page is bound to loopback: it answers only under localhost, 127.0.0.1 and [::1].",
            )
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return self._say(
                HTTPStatus.METHOD_NOT_ALLOWED, root, "Nothing can be changed here", "This page only shows."
            )
        try:
            return self._shown(path, environ["QUERY_STRING"]) or self._say(
                HTTPStatus.NOT_FOUND, root, "There is no such page"
            )
        except (NodeGone, InvalidInput) as error:
            return self._say(HTTPStatus.NOT_FOUND, root, "No such node", sentence(str(error)))
        except StateUnavailable as error:
            return self._redis_is_silent(error, root)
        except Exception:  # noqa: BLE001 - a bug in one page must not show its trace to whoever asks
            logger().exception("page_failed", path=path)
            return self._say(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                root,
                "This page can't be shown",
                "A bug kept the exporter from showing it; its log has the trace.",
            )

    def _shown(self, path: str, query: str) -> Answer | None:
        match path.split("/"):
            case ["", ""]:
                fleet, events = self._fleets.get("", self._read_fleet)
                self._answered_at = fleet.summary.now
                return Answer(HTTPStatus.OK, self._pages.fleet(fleet, events, Query.parse(query)))
            case ["", "nodes", text]:
                name = node_name(text)
                details, plan = self._nodes.get(name, lambda: self._read_node(name))
                self._answered_at = details.now
                return Answer(HTTPStatus.OK, self._pages.node(details, plan))
            case ["", "style.css"]:
                return Answer(HTTPStatus.OK, STYLE, CSS)
        return None

    def _read_fleet(self) -> tuple[FleetStatus, list[Event]]:
        return self._status.fleet(self._queues), self._state.events.latest("", EVENTS_COUNT)

    def _read_node(self, name: NodeName) -> tuple[NodeDetails, NodePlan | None]:
        details = self._status.node(name)
        try:
            return details, self._status.plan(name)
        except InvalidInput:
            return details, None  # the details say what is wrong with the object

    def _redis_is_silent(self, error: StateUnavailable, root: str) -> Answer:
        since = f" It last answered at {clock(self._answered_at)}." if self._answered_at else ""
        return self._say(
            HTTPStatus.SERVICE_UNAVAILABLE,
            root,
            "Redis does not answer",
            f"{sentence(str(error))}{since}",
            "All state is in Redis, so nothing can be shown. While it is away nothing is changed in EC2, and pods keep "
            "their addresses. Everything continues by itself when it is back.",
        )

    def _say(self, status: HTTPStatus, root: str, title: str, *paragraphs: str) -> Answer:
        return Answer(status, self._pages.message(title, *paragraphs, root=root))


def _is_loopback(host: str) -> bool:
    """Whether a Host header names loopback."""
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost" or name.lower().endswith(".localhost")
