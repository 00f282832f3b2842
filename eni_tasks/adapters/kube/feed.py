"""All CiliumNodes in pages, then the watch: the port `NodeFeed`.

One connection's worth of either; what to do when it ends (watch on, back off, list again) is the
watcher's business. Lines are split here, since the client's own watch class replays, hangs on half-open
connections and stumbles over ERROR events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import urllib3

from eni_tasks.adapters.kube.errors import refusal, unreachable
from eni_tasks.adapters.kube.nodes import NODES_PATH
from eni_tasks.domain.cilium_node import decode_node
from eni_tasks.errors import ClusterUnavailable, InvalidInput
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import NodeName
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import Changes, Page

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from eni_tasks.adapters.kube.client import KubeClient

_LISTING, _WATCHING = "listing CiliumNodes", "watching CiliumNodes"
_PAGE_LIMIT_COUNT = 500
_CHUNK_BYTES = 1 << 16


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str
    continue_token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw]  # decoded one by one: an object that can't be understood affects only itself


class _AnyList(msgspec.Struct):
    metadata: _ListMetadata


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _ErrorObject(msgspec.Struct):
    code: int = 500


_VERSION = msgspec.json.Decoder(_AnyList)
_LIST, _EVENT = msgspec.json.Decoder(_List), msgspec.json.Decoder(_Event)
_ERROR = msgspec.json.Decoder(_ErrorObject)


class KubeNodeFeed:
    """Lists and watches.

    Args:
        client: the way there.
        silence_seconds: a watch that says nothing for this long ends, so that it is opened again. It may be quiet
            or half-open: bookmarks usually come once a minute, but the API promises none.
        page_limit_count: objects per page.
    """

    def __init__(
        self, client: KubeClient, silence_seconds: float, *, page_limit_count: int = _PAGE_LIMIT_COUNT
    ) -> None:
        self._client = client
        self._silence_seconds = silence_seconds
        self._page_limit_count = page_limit_count
        self._watch: urllib3.BaseHTTPResponse | None = None

    def pages(self) -> Iterator[Page]:
        """Read all objects in pages; see the port."""
        token = ""
        while True:
            path = f"{NODES_PATH}?limit={self._page_limit_count}" + (f"&continue={quote(token)}" if token else "")
            try:
                page = _LIST.decode(self._client.call("GET", path, what=_LISTING))
                objects = tuple(decode_node(item) for item in page.items)
            except (msgspec.MsgspecError, InvalidInput) as error:
                raise ClusterUnavailable(f"{_LISTING}: the answer is no list: {error}") from error
            version = page.metadata.resource_version
            yield Page(objects=objects, resource_version=version)
            token = page.metadata.continue_token
            if not token:
                return

    def version(self) -> str:
        """Ask which version the server is at, by a list of one object; see the port."""
        answer = self._client.call("GET", f"{NODES_PATH}?limit=1", what=_LISTING)
        try:
            return _VERSION.decode(answer).metadata.resource_version
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(f"{_LISTING}: the answer is no list: {error}") from error

    def changes(self, resource_version: str, timeout_seconds: int) -> Generator[Changes, None, None]:
        """Follow what comes after a version; see the port."""
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={resource_version}"
        path = f"{NODES_PATH}?{query}&timeoutSeconds={timeout_seconds}"
        self._watch = response = self._client.open("GET", path, what=_WATCHING, read_seconds=self._silence_seconds)
        rest = b""
        try:
            yield Changes(resource_version=resource_version)
            for chunk in response.stream(_CHUNK_BYTES):
                # A proxy between the server and this process may cut an event anywhere.
                *lines, rest = (rest + chunk).split(b"\n")
                if lines:
                    yield _changes(lines)
        except urllib3.exceptions.ReadTimeoutError:
            # No error: the next watch continues at the same version, and opening it shows whether the server answers.
            logger().debug("watch_silent", seconds=self._silence_seconds)
        except urllib3.exceptions.HTTPError as error:
            raise unreachable(error, _WATCHING) from error
        finally:
            self._watch = None
            response.close()

    def interrupt(self) -> None:
        """End the present watch soon; see the port."""
        watch = self._watch
        if watch:
            try:
                watch.shutdown()
            except (OSError, RuntimeError, ValueError):
                return  # it has ended in this very moment


def _changes(lines: list[bytes]) -> Changes:
    changed: dict[str, CiliumNode] = {}
    gone: list[tuple[NodeName, str]] = []
    version = ""
    try:
        for line in filter(None, lines):
            event = _EVENT.decode(line)
            if event.type == "ERROR":
                raise refusal(_ERROR.decode(event.object).code, bytes(event.object), _WATCHING)
            node = decode_node(event.object)
            metadata = node.metadata
            version = metadata.resource_version
            if event.type == "DELETED":
                gone.append((NodeName(metadata.name), metadata.uid))
                changed.pop(metadata.name, None)
            elif event.type != "BOOKMARK":
                # Only the latest of several versions matters.
                changed[metadata.name] = node
    except (msgspec.MsgspecError, InvalidInput) as error:
        raise ClusterUnavailable(f"{_WATCHING}: a line is no event: {error}") from error
    return Changes(resource_version=version, changed=tuple(changed.values()), gone=tuple(gone))
