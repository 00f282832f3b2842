"""The adapter's lists and watches against both API servers."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from contract.kube_servers import MERGE_PATCH, NODES, KubeTarget

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.feed import KubeNodeFeed
from eni_tasks.errors import ClusterUnavailable
from eni_tasks.model.cilium_node import CiliumNode, IpamStatus, Status
from eni_tasks.ports.kube import Changes, HistoryGone

if TYPE_CHECKING:
    from pathlib import Path

Create = Callable[..., dict[str, Any]]


@pytest.fixture
def feed(kube: KubeTarget, tmp_path: Path) -> KubeNodeFeed:
    client = KubeClient(10, 4, str(kube.kubeconfig(tmp_path / "kubeconfig")))
    return KubeNodeFeed(client, silence_seconds=20, page_limit_count=2)


def version_of(feed: KubeNodeFeed) -> str:
    return list(feed.pages())[-1].resource_version


def names(objects: tuple[CiliumNode, ...]) -> list[str]:
    return [node.metadata.name for node in objects]


def test_pages(feed: KubeNodeFeed, create: Create) -> None:
    created = [create(str(number))["metadata"]["name"] for number in range(5)]
    pages = list(feed.pages())
    assert [names(page.objects) for page in pages] == [created[:2], created[2:4], created[4:]]
    assert len({page.resource_version for page in pages}) == 1


def test_one_object_that_is_not_understood_spoils_neither_page_nor_watch(feed: KubeNodeFeed, create: Create) -> None:
    version = version_of(feed)
    created = [create("0"), create("1", spec={"instance-id": "i-" + "0" * 200_000}), create("2")]
    listed = [node for page in feed.pages() for node in page.objects]
    watched = [node for changes in feed.changes(version, 2) for node in changes.changed]
    for seen in (listed, watched):
        assert names(tuple(seen)) == [node["metadata"]["name"] for node in created]
        good, bad, _ = seen
        assert good.problem == ""
        assert re.fullmatch(rf"CiliumNode {bad.metadata.name}: .{{,60}}`\$\.spec\.instance-id`.*", bad.problem)
        assert (bad.metadata.uid, bad.metadata.resource_version) == uid_and_version(created[1])


def uid_and_version(node: dict[str, Any]) -> tuple[str, str]:
    return node["metadata"]["uid"], node["metadata"]["resourceVersion"]


def test_no_nodes_are_one_empty_page(feed: KubeNodeFeed) -> None:
    (page,) = feed.pages()
    assert page.objects == ()
    assert int(page.resource_version) > 0


def test_an_expired_page_says_list_again(kube: KubeTarget, feed: KubeNodeFeed, create: Create) -> None:
    for number in range(3):
        create(str(number))
    pages = feed.pages()
    next(pages)
    create("later")
    kube.compact()
    with pytest.raises(HistoryGone, match="listing CiliumNodes"):
        next(pages)


def test_changes(kube: KubeTarget, feed: KubeNodeFeed, create: Create) -> None:
    version = version_of(feed)
    kept, gone = create("kept"), create("gone")
    path = f"{NODES}/{kept['metadata']['name']}"
    kube.call("PATCH", path + "/status", {"status": {"ipam": {"used": {}}}}, content_type=MERGE_PATCH)
    kube.call("DELETE", f"{NODES}/{gone['metadata']['name']}")
    seen = list(feed.changes(version, 1))
    assert seen[0] == Changes(resource_version=version)
    latest = {node.metadata.name: node for changes in seen for node in changes.changed}
    assert latest[kept["metadata"]["name"]].status == Status(ipam=IpamStatus(used={}))
    assert [pair for changes in seen for pair in changes.gone] == [(gone["metadata"]["name"], gone["metadata"]["uid"])]
    versions = [int(changes.resource_version) for changes in seen]
    assert versions == sorted(versions)
    # Continuing from there repeats nothing.
    assert list(feed.changes(str(versions[-1]), 1)) == [Changes(resource_version=str(versions[-1]))]


def test_bookmarks_move_the_version_on(kube: KubeTarget, feed: KubeNodeFeed, create: Create) -> None:
    version = version_of(feed)
    stream = feed.changes(version, 4)
    next(stream)
    create()
    change, *bookmarks = stream
    assert len(change.changed) == 1
    assert {(bookmark.changed, bookmark.gone) for bookmark in bookmarks} == {((), ())}
    assert int(bookmarks[-1].resource_version) >= int(change.resource_version)


def test_a_forgotten_version(feed: KubeNodeFeed, create: Create) -> None:
    create()
    with pytest.raises(HistoryGone, match="too old resource version"):
        list(feed.changes("1", 5))


def test_a_forgotten_version_as_http(sandbox: KubeTarget, tmp_path: Path) -> None:
    assert sandbox.admin
    sandbox.admin.set(gone_as_http=True)
    client = KubeClient(10, 4, str(sandbox.kubeconfig(tmp_path / "kubeconfig")))
    with pytest.raises(HistoryGone, match="too old resource version"):
        list(KubeNodeFeed(client, 20).changes("1", 5))


def test_interrupt_ends_a_quiet_watch(feed: KubeNodeFeed) -> None:
    stream = feed.changes(version_of(feed), 30)
    next(stream)
    timer = threading.Timer(0.3, feed.interrupt)
    timer.start()
    started = time.monotonic()
    # Cut off in the middle of a chunk, or between two: both are an end.
    with suppress(ClusterUnavailable):
        list(stream)
    timer.join()
    assert time.monotonic() - started < 5
    feed.interrupt()


def test_silence_is_an_error(sandbox: KubeTarget, tmp_path: Path) -> None:
    client = KubeClient(10, 4, str(sandbox.kubeconfig(tmp_path / "kubeconfig")))
    feed = KubeNodeFeed(client, silence_seconds=0.5)
    started = time.monotonic()
    with pytest.raises(ClusterUnavailable, match="watching CiliumNodes: no answer"):
        list(feed.changes(version_of(feed), 30))
    assert time.monotonic() - started < 5
