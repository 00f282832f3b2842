"""Lists in pages and watches, on both API servers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from contract.kube_servers import MERGE_PATCH, NODES, KubeTarget

Create = Callable[..., dict[str, Any]]


def names_in(answer: dict[str, Any]) -> list[str]:
    return [node["metadata"]["name"] for node in answer["items"]]


def list_version(kube: KubeTarget) -> str:
    version: str = kube.call("GET", f"{NODES}?limit=1")[1]["metadata"]["resourceVersion"]
    return version


def page(kube: KubeTarget, query: str) -> dict[str, Any]:
    code, answer = kube.call("GET", f"{NODES}?{query}")
    assert code == 200, answer
    assert (answer["apiVersion"], answer["kind"]) == ("cilium.io/v2", "CiliumNodeList")
    return answer


class TestPages:
    def test_pages_show_one_version(self, kube: KubeTarget, create: Create) -> None:
        created = [create(str(number))["metadata"]["name"] for number in range(5)]
        first = page(kube, "limit=2")
        create("0-between")
        second = page(kube, f"limit=2&continue={first['metadata']['continue']}")
        third = page(kube, f"limit=2&continue={second['metadata']['continue']}")
        assert [names_in(part) for part in (first, second, third)] == [created[:2], created[2:4], created[4:]]
        assert len({part["metadata"]["resourceVersion"] for part in (first, second, third)}) == 1
        assert [part["metadata"].get("remainingItemCount") for part in (first, second, third)] == [3, 1, None]
        assert not third["metadata"].get("continue")

    def test_expired_page_offers_an_inconsistent_rest(self, kube: KubeTarget, create: Create) -> None:
        created = [create(str(number))["metadata"]["name"] for number in range(3)]
        token = page(kube, "limit=1")["metadata"]["continue"]
        later = create("3-later")["metadata"]["name"]
        kube.compact()
        code, status = kube.call("GET", f"{NODES}?limit=1&continue={token}")
        assert (code, status["reason"]) == (410, "Expired")
        assert status["message"].startswith("The provided continue parameter is too old")
        rest = page(kube, f"limit=500&continue={status['metadata']['continue']}")
        assert names_in(rest) == [*created[1:], later]

    def test_one_name(self, kube: KubeTarget, create: Create) -> None:
        create("a")
        name = create("b")["metadata"]["name"]
        assert names_in(page(kube, f"fieldSelector=metadata.name%3D{name}")) == [name]

    def test_bad_token(self, kube: KubeTarget) -> None:
        code, status = kube.call("GET", f"{NODES}?limit=1&continue=zz")
        assert (code, status["reason"]) == (400, "BadRequest")

    def test_a_version_to_come(self, kube: KubeTarget) -> None:
        code, status = kube.call("GET", f"{NODES}?resourceVersion=999999999")
        assert (code, status["reason"]) == (504, "Timeout")
        assert status["details"]["retryAfterSeconds"] == 1


class TestWatch:
    def test_changes_in_order(self, kube: KubeTarget, create: Create) -> None:
        version = list_version(kube)
        node = create()
        path = f"{NODES}/{node['metadata']['name']}"
        kube.call("PATCH", path + "/status", {"status": {"a": 1}}, content_type=MERGE_PATCH)
        kube.call("PATCH", path, {"spec": {"b": 1}}, content_type=MERGE_PATCH)
        kube.call("DELETE", path)
        events = kube.lines(f"{NODES}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(set(versions))
        assert versions[0] > int(version)
        # The last state, under the version of the deletion.
        assert events[-1]["object"]["spec"] == {"b": 1}
        assert events[-1]["object"]["status"] == {"a": 1}

    def test_from_the_middle(self, kube: KubeTarget, create: Create) -> None:
        first = create("1")
        second = create("2")
        query = f"watch=1&resourceVersion={first['metadata']['resourceVersion']}&timeoutSeconds=1"
        assert [event["object"] for event in kube.lines(f"{NODES}?{query}")] == [second]

    def test_without_a_version_it_begins_with_all(self, kube: KubeTarget, create: Create) -> None:
        created = {create(str(number))["metadata"]["name"] for number in range(3)}
        events = kube.lines(f"{NODES}?watch=1&timeoutSeconds=1")
        assert {event["type"] for event in events} == {"ADDED"}
        assert {event["object"]["metadata"]["name"] for event in events} == created

    def test_live_events_come_at_once(self, kube: KubeTarget, create: Create) -> None:
        response = kube.open("GET", f"{NODES}?watch=1&resourceVersion={list_version(kube)}&timeoutSeconds=20")
        try:
            lines = iter(response)
            for suffix in ("1", "2"):
                started = time.monotonic()
                node = create(suffix)
                assert json.loads(next(lines)) == {"type": "ADDED", "object": node}
                assert time.monotonic() - started < 5
        finally:
            response.close()

    def test_one_name(self, kube: KubeTarget, create: Create) -> None:
        version = list_version(kube)
        create("1")
        node = create("2")
        selector = f"fieldSelector=metadata.name%3D{node['metadata']['name']}"
        events = kube.lines(f"{NODES}?watch=1&resourceVersion={version}&timeoutSeconds=1&{selector}")
        assert [event["object"] for event in events] == [node]

    def test_it_ends_in_time_after_a_bookmark(self, kube: KubeTarget, create: Create) -> None:
        version = list_version(kube)
        started = time.monotonic()
        query = f"watch=1&resourceVersion={version}&timeoutSeconds=4&allowWatchBookmarks=true"
        response = kube.open("GET", f"{NODES}?{query}")
        node = create()
        events = [json.loads(line) for line in response]
        assert time.monotonic() - started > 3
        # At least one: servers promise no number.
        kinds = [event["type"] for event in events]
        assert kinds == ["ADDED"] + ["BOOKMARK"] * (len(kinds) - 1)
        assert len(kinds) > 1
        bookmark = events[-1]["object"]
        assert (bookmark["apiVersion"], bookmark["kind"]) == ("cilium.io/v2", "CiliumNode")
        assert int(bookmark["metadata"]["resourceVersion"]) >= int(node["metadata"]["resourceVersion"])
        assert not bookmark["metadata"].get("name")

    def test_too_old_is_an_event(self, kube: KubeTarget, create: Create) -> None:
        create()
        (event,) = kube.lines(f"{NODES}?watch=1&resourceVersion=1&timeoutSeconds=5")
        assert event["type"] == "ERROR"
        status = event["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
