"""From a request to an answer: routes, rights, faults, and the verbs on CiliumNodes.

Knows no sockets; `server` reads requests and sends what comes from here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import msgspec

from eni_tasks.sandbox.kube import statuses
from eni_tasks.sandbox.kube.knobs import Entry, Fault, Faults, Requests
from eni_tasks.sandbox.kube.patching import json_patch, merge_patch
from eni_tasks.sandbox.kube.pods import CORE_PATH, Core
from eni_tasks.sandbox.kube.statuses import GROUP, KIND, PLURAL, ApiError
from eni_tasks.sandbox.kube.store import API_VERSION, Body, NodeStore, Page
from eni_tasks.sandbox.kube.watches import Watches
from eni_tasks.sandbox.serving import Dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROOT = f"/apis/{API_VERSION}"
_SUBJECT_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/json-patch+json": json_patch,
    "application/merge-patch+json": merge_patch,
}
_TRUE = ("1", "true", "True")
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Request(msgspec.Struct):
    """The parts of an HTTP request that the API reads."""

    method: str
    target: str
    body: bytes
    content_type: str = ""
    authorization: str = ""


class Response(msgspec.Struct):
    """An answer: the whole body, or the lines of a watch."""

    code: int
    body: bytes = b""
    lines: Iterator[bytes] | None = None
    retry_after_seconds: int | None = None
    content_type: str = "application/json"


class _Call(msgspec.Struct):
    """A request for CiliumNodes, taken apart."""

    verb: str
    name: str
    subresource: str
    query: dict[str, str]
    request: Request


class Api:
    """Answers requests.

    Args:
        store: the nodes.
    """

    def __init__(self, store: NodeStore) -> None:
        self.store = store
        self.knobs = store.knobs
        self.faults = Faults()
        self.requests = Requests()
        self.watches = Watches(store)
        self.core = Core(store)

    def answer(self, request: Request) -> Response:
        """Answer one request.

        Raises:
            Dropped: when a scripted fault wants the connection to drop.
        """
        try:
            if self.knobs.token and request.authorization != f"Bearer {self.knobs.token}":
                raise statuses.unauthorized()
            path, _, query = request.target.partition("?")
            if path == _ROOT + f"/{PLURAL}" or path.startswith(_ROOT + f"/{PLURAL}/"):
                return self._answer_call(_take_apart(path, query, request))
            if path.startswith(CORE_PATH) and request.method == "GET":
                body, lines = self.core.answer(path, query)
                return Response(200, body, lines)
            return Response(*self._answer_other(path, request))
        except ApiError as error:
            return Response(error.code, msgspec.json.encode(error.body))

    def _answer_call(self, call: _Call) -> Response:
        if self.knobs.latency_seconds:
            time.sleep(self.knobs.latency_seconds)
        fault = self.faults.take(call.verb, call.name, call.subresource)
        if fault and not fault.after_effect:
            return self._strike(call, fault)
        try:
            resource = f"{PLURAL}/{call.subresource}" if call.subresource else PLURAL
            if f"{call.verb} {resource}" in self.knobs.denied:
                raise statuses.forbidden(call.verb, resource, call.name)
            response = self._act(call)
        except ApiError as error:
            response = Response(error.code, msgspec.json.encode(error.body))
        if fault:
            return self._strike(call, fault)
        self._record(call, response.code)
        return response

    def _strike(self, call: _Call, fault: Fault) -> Response:
        self._record(call, fault.code)
        if not fault.code:
            raise Dropped
        error = ApiError(fault.code, "a scripted fault of the sandbox", details=statuses.named(call.name))
        return Response(fault.code, msgspec.json.encode(error.body), retry_after_seconds=fault.retry_after_seconds)

    def _record(self, call: _Call, code: int) -> None:
        self.requests.record(Entry(call.verb, call.name, call.subresource, code))

    def _act(self, call: _Call) -> Response:  # noqa: PLR0911 - one line per verb
        if call.verb == "watch":
            return Response(200, lines=self._watch(call.query))
        if call.verb == "list":
            return Response(200, _list_body(self._list(call.query)))
        status = call.subresource == "status"
        if call.verb == "get":
            return Response(200, self.store.get(call.name).raw)
        if call.verb == "create" and not call.name:
            return Response(201, self.store.create(_parse_node(call.request.body)).raw)
        if call.verb == "update" and call.name:
            return Response(200, self.store.replace(call.name, _parse_node(call.request.body), status=status).raw)
        if call.verb == "patch" and call.name:
            return self._patch(call, status=status)
        if call.verb == "delete" and call.name and not status:
            return self._delete(call)
        raise statuses.not_supported(call.verb)

    def _list(self, query: dict[str, str]) -> Page:
        wanted_version = _number(query, "resourceVersion")
        if wanted_version > self.store.version:
            text = f"Too large resource version: {wanted_version}, current: {self.store.version}"
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise ApiError(504, f"Timeout: {text}", details={"causes": causes, "retryAfterSeconds": 1})
        return self.store.page(_number(query, "limit"), query.get("continue", ""), _only_name(query))

    def _watch(self, query: dict[str, str]) -> Iterator[bytes]:
        return self.watches.stream(
            _number(query, "resourceVersion"),
            only_name=_only_name(query),
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            timeout_seconds=_number(query, "timeoutSeconds") or None,
        )

    def _patch(self, call: _Call, *, status: bool) -> Response:
        kind = call.request.content_type.partition(";")[0].strip()
        apply = _PATCHES.get(kind)
        if apply is None:
            known = ", ".join([*_PATCHES, "application/apply-patch+yaml"])
            text = "the body of the request was in an unknown format - accepted media types include: "
            raise ApiError(415, text + known)
        patch = _parse(call.request.body)
        return Response(200, self.store.patch(call.name, lambda node: apply(node, patch), status=status).raw)

    def _delete(self, call: _Call) -> Response:
        options = _parse(call.request.body) if call.request.body else {}
        conditions = options.get("preconditions") or {}
        uid = self.store.get(call.name).body["metadata"]["uid"]
        kept = self.store.delete(call.name, conditions.get("uid", ""), conditions.get("resourceVersion", ""))
        if kept:
            return Response(200, kept.raw)
        details = statuses.named(call.name) | {"uid": uid}
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Response(200, msgspec.json.encode(success))

    def _answer_other(self, path: str, request: Request) -> tuple[int, bytes]:
        if path in ("/readyz", "/livez", "/healthz"):
            return 200, b"ok"
        if path == "/version":
            return 200, msgspec.json.encode({"major": "1", "minor": "30", "gitVersion": "v1.30.0-sandbox"})
        if path == "/apis":
            return 200, msgspec.json.encode(_group_list())
        if path == _ROOT:
            return 200, msgspec.json.encode(_resource_list())
        if path == _SUBJECT_REVIEW and request.method == "POST":
            return 201, msgspec.json.encode(self._review(_parse(request.body)))
        return 404, b"404 page not found\n"

    def _review(self, review: Body) -> Body:
        asked = review.get("spec", {}).get("resourceAttributes", {})
        resource = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource", ""))))
        denied = f"{asked.get('verb', '')} {resource}" in self.knobs.denied
        return {**review, "status": {"allowed": not denied}}


def _take_apart(path: str, query_text: str, request: Request) -> _Call:
    parts = [unquote(part) for part in path[len(_ROOT) :].strip("/").split("/")][1:]
    name, subresource = (*parts, "", "")[:2]
    if len(parts) > 2 or subresource not in ("", "status"):  # noqa: PLR2004 - a name and a subresource
        raise statuses.not_found(name)
    query = {key: values[-1] for key, values in parse_qs(query_text).items()}
    verb = _VERBS.get(request.method, "")
    if verb == "get" and not name:
        verb = "watch" if query.get("watch") in _TRUE else "list"
    return _Call(verb, name, subresource, query, request)


def _number(query: dict[str, str], key: str) -> int:
    text = query.get(key) or "0"
    if not text.isdecimal():
        raise ApiError(400, f"{key}: Invalid value: {text}: not a number")
    return int(text)


def _only_name(query: dict[str, str]) -> str:
    selector = query.get("fieldSelector", "")
    if query.get("labelSelector") or (selector and not selector.startswith("metadata.name=")):
        raise ApiError(400, "the sandbox selects by metadata.name only")
    return selector.removeprefix("metadata.name=")


def _parse(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from error


def _parse_node(body: bytes) -> Body:
    node: Body = _parse(body)
    found, expected = (node.get("apiVersion"), node.get("kind")), (API_VERSION, KIND)
    if found[0] != expected[0]:
        text = f"the API version in the data ({found[0]}) does not match the expected API version ({expected[0]})"
        raise ApiError(400, text)
    if found != expected:
        raise ApiError(400, f"the kind in the data ({found[1]}) does not match the expected kind ({KIND})")
    return node


def _list_body(page: Page) -> bytes:
    metadata: dict[str, Any] = {"continue": page.continue_token, "resourceVersion": str(page.version)}
    if page.remaining_count:
        metadata["remainingItemCount"] = page.remaining_count
    head = b'{"apiVersion":"%b","kind":"%bList","metadata":' % (API_VERSION.encode(), KIND.encode())
    items = b",".join(stored.raw for stored in page.items)
    return b"".join((head, msgspec.json.encode(metadata), b',"items":[', items, b"]}\n"))


def _group_list() -> Body:
    version = {"groupVersion": API_VERSION, "version": API_VERSION.rpartition("/")[2]}
    group = {"name": GROUP, "versions": [version], "preferredVersion": version}
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}


def _resource_list() -> Body:
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    nodes = {"name": PLURAL, "singularName": KIND.lower(), "namespaced": False, "kind": KIND, "verbs": verbs}
    status = {**nodes, "name": f"{PLURAL}/status", "singularName": "", "verbs": ["get", "patch", "update"]}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/v2",
        "resources": [nodes, status],
    }
