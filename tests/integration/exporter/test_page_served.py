"""The status page, served over HTTP by the real exporter process on a real Redis, also one that hangs."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import redis
import redis_servers
from fleet_in_redis import REFUSED, TROUBLES, FleetInRedis, name_of, refuse_and_throttle
from page_under_test import Page, page_of
from processes_under_test import running
from pydantic import SecretStr

from eni_tasks.bootstrap import Services
from eni_tasks.model.cilium_node import CiliumNode, Metadata
from eni_tasks.settings import Settings
from eni_tasks.state.runs import NewObjects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eni_tasks.model.network import NodeName
    from eni_tasks.model.work import WorkKind
    from eni_tasks.state import State

LIMIT_SECONDS = 3.0
PASSWORD = "pa55-of-redis"  # noqa: S105 - a test's own
ODD = "10-0-0-1.odd"


class Silence:
    def send(self, kind: WorkKind, name: NodeName) -> None:
        raise AssertionError(f"a page sent {kind} of {name}")


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    """A server of this module's own, with a password: it is stopped."""
    with redis_servers.running(options=("--requirepass", PASSWORD)) as url:
        yield url.replace("redis://", f"redis://:{PASSWORD}@")


@pytest.fixture(scope="module")
def state(redis_url: str) -> Iterator[State]:
    """A fleet in trouble, and an object that can't be understood."""
    services = Services(Settings(cluster="pages", redis_url=SecretStr(redis_url)), Silence())
    state = services.state
    FleetInRedis(state, 60, TROUBLES)
    refuse_and_throttle(state)
    problem = "spec.ipam.pre-allocate: <b>expected</b> int"
    odd = CiliumNode(metadata=Metadata(name=ODD, uid="odd", resource_version="1"), problem=problem)
    state.runs.store(NewObjects(objects=[odd]))
    yield state
    state.connection.client.close()


@pytest.fixture(scope="module")
def page(state: State, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with page_of(tmp_path_factory.mktemp("exporter"), redis_url, "pages") as page:
        yield page
        assert page.process.end() == 0
        assert "Traceback" not in page.process.said


def commands(state: State) -> int:
    found: int = state.connection.client.info("stats")["total_commands_processed"]
    return found


@contextmanager
def silent(url: str) -> Iterator[None]:
    """Stop the server's process: its kernel still accepts connections."""
    with redis.Redis.from_url(url) as client:
        pid = client.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_fleet_and_what_is_in_trouble(page: Page) -> None:
    html = page.html()
    assert "of 61 nodes are not at size" in html
    for number in (8, 10, 13, 22):
        assert f'<a href="nodes/{name_of(number)}">' in html
    assert name_of(1) not in html
    for words in (
        f"CreateNetworkInterface is stopped for all workers: {REFUSED}",
        "reported that it is full",
    ):
        assert words in html
    assert "&lt;b&gt;expected&lt;/b&gt;" in html
    assert "ada@workstation" in html


def test_a_node_and_what_is_in_its_way(page: Page) -> None:
    html = page.html(f"/nodes/{name_of(13)}")
    for words in ("15 used, 3 free, 5 needed", "In the way:", "CreateNetworkInterface has to wait", "10.64.13.10"):
        assert words in html
    assert "object-not-understood" in page.html(f"/nodes/{ODD}")
    assert "4 not shown" in page.html(f"/nodes/{name_of(8)}")


def test_a_search_lists_nodes_that_are_well(page: Page) -> None:
    html = page.html("/?prefix=ip-10-0-5")
    assert f'href="nodes/{name_of(5)}"' in html
    assert f'href="nodes/{name_of(59)}"' in html
    assert f'href="nodes/{name_of(10)}"' not in html.partition('aria-labelledby="budgets"')[0].partition("<h2 id=")[2]
    assert "No node" in page.html("/?prefix=%3Cscript%3E")
    assert "<script>" not in page.html("/?prefix=%3Cscript%3E")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/?page=7&page=x&show=nothing", 200),
        ("/style.css", 200),
        ("/nodes/", 404),
        ("/nodes/none", 404),
        ("/nodes/Bad_Name", 404),
        ("/nodes/..%2f..%2fetc%2fpasswd", 404),
        ("/nodes/%3Cscript%3E", 404),
        ("/nodes/%ff%00", 404),
        ("/metrics", 404),
    ],
)
def test_paths(page: Page, path: str, status: int) -> None:
    answer = page.ask(path)
    assert answer.status == status
    assert b"<script" not in answer.data
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"


def test_only_reading_is_possible(page: Page) -> None:
    answer = page.ask(method="POST")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    answer = page.ask(method="HEAD")
    assert (answer.status, answer.data) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 1000


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:9465", 200), ("evil.example", 421), ("10.0.0.1:9465", 421)],
)
def test_at_loopback_it_answers_under_no_other_name(page: Page, host: str, status: int) -> None:
    """Else another site's name that leads to 127.0.0.1 would let its scripts read the page."""
    assert page.ask(Host=host).status == status


def test_bound_to_all_addresses_it_answers_under_any_name(state: State, redis_url: str, tmp_path: Path) -> None:
    with page_of(tmp_path, redis_url, "pages", PAGE_ADDRESS="0.0.0.0", FLOWER_URL="https://flower.example") as page:  # noqa: S104
        assert page.ask(Host="status.example").status == 200
        assert "https://flower.example/tasks" in page.html()


def test_ten_open_pages_cost_redis_what_one_does(page: Page, state: State) -> None:
    def cost(pages: int) -> int:
        time.sleep(3.1)  # what is kept is old by then
        before = commands(state)
        with ThreadPoolExecutor(pages) as threads:
            assert {answer.status for answer in threads.map(lambda _: page.ask(), range(pages))} == {200}
        return commands(state) - before

    one = cost(1)
    assert cost(10) == pytest.approx(one, abs=3)


def test_a_silent_redis_gives_every_page_within_three_seconds(page: Page, redis_url: str) -> None:
    paths = ["/", "/", "/?prefix=ip", f"/nodes/{name_of(1)}", f"/nodes/{name_of(2)}", "/nodes/none", "/style.css"]
    page.html()
    with silent(redis_url):
        time.sleep(3.1)  # what is kept is old by then

        def ask(path: str) -> tuple[str, int, str, float]:
            started = time.monotonic()
            answer = page.ask(path)
            return path, answer.status, answer.data.decode(), time.monotonic() - started

        for _ in range(2):
            with ThreadPoolExecutor(len(paths)) as threads:
                answers = list(threads.map(ask, paths))
            for path, status, html, seconds in answers:
                assert seconds < LIMIT_SECONDS, path
                assert status == (200 if path == "/style.css" else 503)
                if status == 503:
                    assert "Redis does not answer" in html
                    assert "It last answered at" in html
                    assert "pods keep their addresses" in html
                    assert PASSWORD not in html

    def is_back() -> bool:
        return page.ask().status == 200

    page.process.until(is_back, "the page is back")


def test_nothing_secret_is_shown_or_logged(page: Page) -> None:
    for path in ("/", "/?show=all", f"/nodes/{name_of(13)}", "/nodes/none"):
        assert PASSWORD not in page.ask(path).data.decode()
    assert PASSWORD not in page.process.said


def test_an_address_that_is_taken_is_named(page: Page, tmp_path: Path) -> None:
    port = page.url.rpartition(":")[2]
    with running(tmp_path / "log", "workers.exporter", "--port", "0", ENI_TASKS_PAGE_PORT=port) as process:
        assert process.popen.wait(30) == 2
    assert f"can't listen on 127.0.0.1 port {port}" in process.said
    assert "ENI_TASKS_PAGE_PORT" in process.said
