"""The watcher's loop on the sandbox: whatever the API server does, the sink ends up with the truth."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from contract.kube.conftest import manifest
from contract.kube_servers import MERGE_PATCH, NODES, KubeTarget
from structlog.testing import capture_logs

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.feed import KubeNodeFeed
from eni_tasks.errors import StateUnavailable
from eni_tasks.sandbox.kube.knobs import Fault
from eni_tasks.watcher import watching
from eni_tasks.watcher.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from eni_tasks.model.cilium_node import CiliumNode
    from eni_tasks.ports.kube import Page
    from eni_tasks.sandbox.kube.admin import KubeAdmin

DEADLINE_SECONDS = 30.0
SILENCE_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.05  # the lengths of the pauses are a unit test's matter


class Sink:
    """Remembers nodes as `Ingest` does."""

    def __init__(self) -> None:
        self.nodes: dict[str, CiliumNode] = {}
        self.lists_count = 0
        self.refusals_count = 0
        self._news = threading.Condition()

    def changed(self, objects: Sequence[CiliumNode]) -> None:
        with self._news:
            if self.refusals_count:
                self.refusals_count -= 1
                raise StateUnavailable("Redis is away")
            self.nodes |= {node.metadata.name: node for node in objects}
            self._news.notify_all()

    def removed(self, name: str, uid: str) -> None:
        with self._news:
            if name in self.nodes and self.nodes[name].metadata.uid == uid:
                del self.nodes[name]
            self._news.notify_all()

    def take_list(self, pages: Iterable[Page]) -> tuple[int, str]:
        names: set[str] = set()
        version = ""
        for page in pages:
            self.changed(page.objects)
            names |= {node.metadata.name for node in page.objects}
            version = page.resource_version
        with self._news:
            self.nodes = {name: node for name, node in self.nodes.items() if name in names}
            self.lists_count += 1
            self._news.notify_all()
        return len(names), version

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(condition, DEADLINE_SECONDS), (sorted(self.nodes), self.lists_count)


class World:
    """A server, the loop over it, and the sink behind it."""

    def __init__(self, target: KubeTarget, folder: Path) -> None:
        assert target.admin
        self.admin: KubeAdmin = target.admin
        self.target = target
        self.sink = Sink()
        client = KubeClient(2, 4, str(target.kubeconfig(folder / "kubeconfig", "first")))
        feed = KubeNodeFeed(client, SILENCE_SECONDS, page_limit_count=2)
        self.watching = Watching("nodes", feed, self.sink, relist_seconds=300, silence_seconds=SILENCE_SECONDS)
        self.thread = threading.Thread(target=self.watching.run)

    def start(self, *names: str) -> None:
        for name in names:
            self.create(name)
        self.admin.set(bookmark_seconds=0.5)
        self.thread.start()
        self.sink.wait_for(lambda: self.sink.lists_count == 1)
        assert sorted(self.sink.nodes) == sorted(names)

    def create(self, name: str) -> None:
        assert self.target.call("POST", NODES, manifest(name))[0] == 201

    def sees(self, *names: str) -> None:
        self.sink.wait_for(lambda: sorted(self.sink.nodes) == sorted(names))


@pytest.fixture
def world(sandbox: KubeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", FIRST_PAUSE_SECONDS)
    world = World(sandbox, tmp_path)
    yield world
    world.watching.stop()
    world.thread.join(5)
    assert not world.thread.is_alive()


def test_list_then_watch(world: World) -> None:
    world.start("a", "b", "c")
    world.create("d")
    world.target.call("DELETE", f"{NODES}/a")
    world.sees("b", "c", "d")
    world.target.call("PATCH", f"{NODES}/b/status", {"status": {"ipam": {"used": {}}}}, content_type=MERGE_PATCH)
    world.sink.wait_for(lambda: world.sink.nodes["b"].status is not None)
    assert world.sink.lists_count == 1


@pytest.mark.parametrize("trouble", ["break_watches", "silence_watches"])
def test_a_lost_watch_continues_without_a_list(world: World, trouble: str) -> None:
    world.start("a")
    getattr(world.admin, trouble)()
    world.create("b")
    world.sees("a", "b")
    assert world.sink.lists_count == 1


def test_a_quiet_api_server_is_no_trouble(world: World) -> None:
    """The API promises no bookmarks: a watch that is silent repeatedly must neither fail nor cause another list."""
    with capture_logs() as logs:
        world.start("a")
        world.admin.set(bookmark_seconds=3600)
        world.watching.relist()
        world.sink.wait_for(lambda: world.sink.lists_count == 2)
        watches = world.admin.record().counts["watch"]
        deadline, followed = time.monotonic() + DEADLINE_SECONDS, True
        while world.admin.record().counts["watch"] < watches + 4:
            assert time.monotonic() < deadline
            followed = followed and world.watching.follows
            time.sleep(0.02)
    assert followed
    assert not world.watching.stuck
    assert [line for line in logs if line["event"] == "watch_failed"] == []
    world.create("b")
    world.sees("a", "b")
    assert world.sink.lists_count == 2


@pytest.mark.parametrize("as_http", [False, True], ids=["event", "http"])
def test_a_deletion_in_a_forgotten_gap_is_noticed(world: World, *, as_http: bool) -> None:
    world.start("a", "b")
    world.admin.set(gone_as_http=as_http)
    world.admin.fault(Fault(verb="watch", code=503, times_count=2))
    world.admin.break_watches()
    world.target.call("DELETE", f"{NODES}/a")
    world.create("c")
    world.admin.compact()
    world.sees("b", "c")
    assert world.sink.lists_count == 2
    world.create("d")
    world.sees("b", "c", "d")


@pytest.mark.parametrize("code", [429, 500, 403, 0], ids=["throttled", "500", "forbidden", "dropped"])
def test_failing_lists_and_watches_are_tried_again(world: World, code: int) -> None:
    world.admin.fault(Fault(verb="list", code=code, times_count=2), Fault(verb="watch", code=code, times_count=2))
    world.start()
    world.create("a")
    world.sees("a")


def test_a_list_that_breaks_in_the_middle_counts_for_nothing(world: World) -> None:
    world.admin.fault(Fault(verb="list", code=500, skip_count=1))
    world.start("a", "b", "c")
    assert world.sink.lists_count == 1
    assert world.admin.record().counts["list"] in (4, 5)  # the fifth asks for the version, before the watch


def test_what_the_sink_refused_comes_again(world: World) -> None:
    world.start("a")
    world.sink.refusals_count = 2
    world.create("b")
    world.sees("a", "b")
    assert world.sink.lists_count == 1


def test_relist_on_demand(world: World) -> None:
    world.start("a", "b")
    world.sink.nodes.clear()
    world.watching.relist()
    world.sees("a", "b")
    assert world.sink.lists_count == 2


def test_an_outdated_token_is_replaced(world: World, tmp_path: Path) -> None:
    world.start("a")
    world.admin.set(token="second")  # noqa: S106 - not a secret
    world.admin.break_watches()
    world.target.call("POST", NODES, manifest("b"), token="second")  # noqa: S106 - not a secret
    world.target.kubeconfig(tmp_path / "kubeconfig", "second")
    world.sees("a", "b")
