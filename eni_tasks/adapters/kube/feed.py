"""All objects of a kind in pages, then the watch: the port `Feed`.

One connection's worth of either; what to do when it ends (watch on, back off, list again) is the
watcher's business. Lines are split here, since the client's own watch class replays, hangs on half-open
connections and stumbles over ERROR events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
import urllib3

from eni_tasks.adapters.kube.errors import refusal, unreachable
from eni_tasks.adapters.kube.nodes import NODES_PATH
from eni_tasks.domain.cilium_node import decode_node
from eni_tasks.errors import ClusterUnavailable, InvalidInput
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.pod import Pod, decode_pod
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import Changes, Page

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from eni_tasks.adapters.kube.client import KubeClient

T = TypeVar("T")

PODS_PATH = "/api/v1/pods"
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


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    name: str = ""
    uid: str = ""


class _Object(msgspec.Struct):
    """What every object has, a bookmark's included."""

    metadata: _Metadata


class _ErrorObject(msgspec.Struct):
    code: int = 500


_VERSION = msgspec.json.Decoder(_AnyList)
_LIST, _EVENT = msgspec.json.Decoder(_List), msgspec.json.Decoder(_Event)
_OBJECT = msgspec.json.Decoder(_Object)
_ERROR = msgspec.json.Decoder(_ErrorObject)


class Source(NamedTuple, Generic[T]):
    """What is followed: its name for messages, where it is, which of it (a field selector), and how it is decoded."""

    what: str
    path: str
    selector: str
    decode: Callable[[msgspec.Raw], T]


class KubeFeed(Generic[T]):
    """Lists and watches.

    Args:
        source: what.
        client: the way there.
        silence_seconds: a watch that says nothing for this long ends, so that it is opened again. It may be quiet
            or half-open: bookmarks usually come once a minute, but the API promises none.
        page_limit_count: objects per page.
    """

    def __init__(
        self,
        source: Source[T],
        client: KubeClient,
        silence_seconds: float,
        *,
        page_limit_count: int = _PAGE_LIMIT_COUNT,
    ) -> None:
        self._source = source
        self._path = f"{source.path}?" + (f"fieldSelector={quote(source.selector)}&" if source.selector else "")
        self._listing, self._watching = f"listing {source.what}", f"watching {source.what}"
        self._client = client
        self._silence_seconds = silence_seconds
        self._page_limit_count = page_limit_count
        self._watch: urllib3.BaseHTTPResponse | None = None

    def pages(self) -> Iterator[Page[T]]:
        """Read all objects in pages; see the port."""
        token = ""
        while True:
            path = f"{self._path}limit={self._page_limit_count}" + (f"&continue={quote(token)}" if token else "")
            try:
                page = _LIST.decode(self._client.call("GET", path, what=self._listing))
                objects = tuple(self._source.decode(item) for item in page.items)
            except (msgspec.MsgspecError, InvalidInput) as error:
                raise ClusterUnavailable(f"{self._listing}: the answer is no list: {error}") from error
            version = page.metadata.resource_version
            yield Page(objects=objects, resource_version=version)
            token = page.metadata.continue_token
            if not token:
                return

    def version(self) -> str:
        """Ask which version the server is at, by a list of one object; see the port."""
        answer = self._client.call("GET", f"{self._path}limit=1", what=self._listing)
        try:
            return _VERSION.decode(answer).metadata.resource_version
        except msgspec.MsgspecError as error:
            raise ClusterUnavailable(f"{self._listing}: the answer is no list: {error}") from error

    def changes(self, resource_version: str, timeout_seconds: int) -> Generator[Changes[T], None, None]:
        """Follow what comes after a version; see the port."""
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={resource_version}"
        path = f"{self._path}{query}&timeoutSeconds={timeout_seconds}"
        self._watch = response = self._client.open("GET", path, what=self._watching, read_seconds=self._silence_seconds)
        rest = b""
        try:
            yield Changes(resource_version=resource_version)
            for chunk in response.stream(_CHUNK_BYTES):
                # A proxy between the server and this process may cut an event anywhere.
                *lines, rest = (rest + chunk).split(b"\n")
                if lines:
                    yield self._changes(lines)
        except urllib3.exceptions.ReadTimeoutError:
            # No error: the next watch continues at the same version, and opening it shows whether the server answers.
            logger().debug("watch_silent", seconds=self._silence_seconds)
        except urllib3.exceptions.HTTPError as error:
            raise unreachable(error, self._watching) from error
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

    def _changes(self, lines: list[bytes]) -> Changes[T]:
        changed: dict[str, T] = {}
        gone: list[tuple[str, str]] = []
        version = ""
        try:
            for line in filter(None, lines):
                event = _EVENT.decode(line)
                if event.type == "ERROR":
                    raise refusal(_ERROR.decode(event.object).code, bytes(event.object), self._watching)
                metadata = _OBJECT.decode(event.object).metadata
                version = metadata.resource_version
                if event.type == "DELETED":
                    gone.append((metadata.name, metadata.uid))
                    changed.pop(metadata.uid, None)
                elif event.type != "BOOKMARK":
                    # Only the latest of several versions matters.
                    changed[metadata.uid] = self._source.decode(event.object)
        except (msgspec.MsgspecError, InvalidInput) as error:
            raise ClusterUnavailable(f"{self._watching}: a line is no event: {error}") from error
        return Changes(resource_version=version, changed=tuple(changed.values()), gone=tuple(gone))


class KubeNodeFeed(KubeFeed[CiliumNode]):
    """All CiliumNodes; arguments as of `KubeFeed`."""

    def __init__(
        self, client: KubeClient, silence_seconds: float, *, page_limit_count: int = _PAGE_LIMIT_COUNT
    ) -> None:
        source = Source("CiliumNodes", NODES_PATH, "", decode_node)
        super().__init__(source, client, silence_seconds, page_limit_count=page_limit_count)


class KubePodFeed(KubeFeed[Pod]):
    """The pods that wait on a node; one that begins to run is gone. Arguments as of `KubeFeed`."""

    def __init__(
        self, client: KubeClient, silence_seconds: float, *, page_limit_count: int = _PAGE_LIMIT_COUNT
    ) -> None:
        source = Source("pods", PODS_PATH, "status.phase=Pending,spec.nodeName!=", decode_pod)
        super().__init__(source, client, silence_seconds, page_limit_count=page_limit_count)
