"""The status page in a real browser, from a real exporter on a real Redis: a large fleet, one node, and a phone.

With SCREENSHOTS set to a folder, the pictures of README.md and docs/operations.md are taken on the way.
"""

from __future__ import annotations

import re
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from browsing import picture
from fleet_in_redis import REFUSED, TROUBLES, FleetInRedis, name_of, refuse_and_throttle
from page_under_test import page_of
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab
from pydantic import SecretStr
from redis_servers import any_kind
from redis_servers import running as redis_running
from whole import Silence

from eni_tasks.bootstrap import Services
from eni_tasks.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fleet_in_redis import Case
    from processes_under_test import Process

    from eni_tasks.state import State

MANY = 5000
LIMIT_SECONDS = 2.0
DESK: Any = {"width": 1120, "height": 1000}
PHONE: Any = {"width": 360, "height": 740}
LINKS = {"FLOWER_URL": "https://flower.example.org", "GRAFANA_URL": "https://grafana.example.org"}

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with redis_running(any_kind()) as url:
        yield url


@contextmanager
def served(folder: Path, redis_url: str, count: int, cases: Mapping[int, Case]) -> Iterator[tuple[str, State, Process]]:
    """The address of the status page of a fleet in a cluster of its own; its state, and the exporter's process."""
    cluster = f"prod-{uuid.uuid4().hex[:6]}" if count != MANY else "prod"
    services = Services(Settings(cluster=cluster, redis_url=SecretStr(redis_url)), Silence())
    FleetInRedis(services.state, count, cases)
    with page_of(folder, redis_url, cluster, **LINKS) as page:
        yield page.url, services.state, page.process
    services.state.connection.client.close()


@contextmanager
def tab(browser: Browser, url: str, *, viewport: Any = DESK, scheme: Any = "light") -> Iterator[Tab]:
    """A tab without JavaScript, in which nothing may be blocked, missing, or asked of another server."""
    context = browser.new_context(
        base_url=url, viewport=viewport, color_scheme=scheme, java_script_enabled=False, device_scale_factor=1
    )
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("console", lambda message: troubles.append(message.text))
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("requestfailed", lambda request: troubles.append(request.url))
    opened.on("request", lambda request: None if request.url.startswith(url) else troubles.append(request.url))
    yield opened
    context.close()
    assert troubles == []


def fits(browser: Browser, url: str, path: str, viewport: Any) -> None:
    """Nothing is wider than the window, and what one touches is large enough for a finger."""
    with browser.new_context(base_url=url, viewport=viewport) as context:
        page = context.new_page()
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        for control in page.locator("input, button").all():
            box = control.bounding_box()
            assert box is not None
            assert box["height"] >= (44 if viewport is PHONE else 24)


# One test, since it costs seconds to fill the fleet and to start the exporter; its steps below.
def test_five_thousand_nodes(browser: Browser, redis_url: str, tmp_path: Path) -> None:
    with served(tmp_path, redis_url, MANY, TROUBLES) as (url, state, process):
        refuse_and_throttle(state)
        with tab(browser, url) as page:
            the_fleet_is_shown_at_a_glance(page)
            picture(page, "status-page")
            a_node_in_trouble_is_explained(page)
            picture(page, "status-node", whole=True)
            nodes_are_found_by_prefix_and_page_by_page(page)
            the_fleet_is_there_within_two_seconds(page, process)
        with tab(browser, url, viewport=PHONE, scheme="dark") as page:
            page.goto("/")
            expect(page.get_by_role("heading", level=1)).to_have_text("4 of 5,000 nodes are not at size")
        for path in ("/", "/?show=all&page=3", f"/nodes/{name_of(13)}", f"/nodes/{name_of(44)}", "/nodes/none"):
            fits(browser, url, path, PHONE)
            fits(browser, url, path, DESK)


def the_fleet_is_shown_at_a_glance(page: Tab) -> None:
    page.goto("/")
    expect(page).to_have_title("4 of 5,000 nodes not at size · eni-tasks prod")
    expect(page.get_by_role("heading", level=1)).to_have_text("4 of 5,000 nodes are not at size")
    notices = page.get_by_role("region", name="Paused, refused, throttled")
    expect(notices).to_contain_text(REFUSED)
    expect(notices).to_contain_text("reported that it is full")
    rows = page.get_by_role("region", name="Nodes", exact=True).locator(".nodes > li")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text(name_of(10))  # it has no free address
    expect(rows.first).to_contain_text("in deficit, no free address")
    expect(rows.filter(has_text="not shown yet")).to_contain_text(name_of(8))
    budgets = page.get_by_role("region", name="EC2 rate limits").get_by_role("listitem")
    expect(budgets.filter(has_text="CreateNetworkInterface")).to_contain_text("stopped")
    expect(budgets.filter(has_text="AssignPrivateIpAddresses")).to_contain_text(re.compile(r"throttled \d+ s ago"))
    expect(page.get_by_role("img", name="212 free of 65,531")).to_be_visible()
    expect(page.get_by_role("region", name="Latest events").get_by_role("listitem").first).to_contain_text(name_of(13))


def a_node_in_trouble_is_explained(page: Tab) -> None:
    page.get_by_role("region", name="Nodes", exact=True).get_by_role("link", name=name_of(13)).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name_of(13))
    needs = page.get_by_role("region", name="What it needs")
    expect(needs).to_contain_text("5 more are needed")
    expect(needs).to_contain_text("In the way: CreateNetworkInterface is stopped for all workers")
    interfaces = page.get_by_role("article")
    expect(interfaces).to_have_count(2)
    expect(interfaces.first).to_contain_text("full")
    expect(interfaces.last.get_by_role("img")).to_have_attribute("aria-label", "6 used, 3 free")
    expect(interfaces.last.locator(".cells li")).to_have_count(9)
    expect(page.get_by_role("region", name="History").get_by_role("listitem")).to_have_count(2)
    link = page.get_by_role("link", name="Its tasks in Flower")
    expect(link).to_have_attribute("href", re.compile(r"^https://flower\.example\.org/tasks\?name="))


def nodes_are_found_by_prefix_and_page_by_page(page: Tab) -> None:
    page.get_by_role("link", name="Fleet").click()
    nodes = page.get_by_role("region", name="Nodes", exact=True)
    page.get_by_label("Name begins with").fill("ip-10-3-1")
    page.get_by_role("button", name="Search").click()
    expect(nodes).to_contain_text("1 to 50 of 111")
    nodes.get_by_role("link", name="Next").click()
    nodes.get_by_role("link", name="Next").click()
    expect(nodes).to_contain_text("101 to 111 of 111")
    expect(nodes.locator(".nodes > li")).to_have_count(11)
    nodes.get_by_role("link", name="All (5,000)").click()
    expect(nodes.locator(".nodes > li")).to_have_count(50)
    page.get_by_label("Name begins with").fill("<b>none")
    page.get_by_role("button", name="Search").click()
    expect(nodes).to_contain_text("No node's name begins with “<b>none”.")


def the_fleet_is_there_within_two_seconds(page: Tab, process: Process) -> None:
    """In the exporter's own time, of which nearly all of a load consists: other tests need the machine meanwhile."""
    time.sleep(3.1)  # what is kept is old by then
    before = process.cpu_seconds
    page.goto("/?show=all")
    expect(page.locator(".nodes > li")).to_have_count(50)
    assert 0.05 < process.cpu_seconds - before < LIMIT_SECONDS


def test_one_node_that_is_well(browser: Browser, redis_url: str, tmp_path: Path) -> None:
    with served(tmp_path, redis_url, 1, {}) as (url, *_), tab(browser, url) as page:
        page.goto("/")
        expect(page.get_by_role("heading", level=1)).to_have_text("The only node is at size")
        expect(page.get_by_role("region", name="Nodes", exact=True)).to_contain_text("Every node is at size.")
        expect(page.get_by_role("heading", name="Paused, refused, throttled")).to_have_count(0)
        page.get_by_role("link", name="All (1)").click()
        page.get_by_role("link", name=name_of(0)).click()
        expect(page.get_by_role("region", name="What it needs")).to_contain_text("nothing is needed")
        expect(page.get_by_role("article")).to_have_count(1)
        fits(browser, url, "/", PHONE)


def test_one_node_in_trouble(browser: Browser, redis_url: str, tmp_path: Path) -> None:
    with served(tmp_path, redis_url, 1, {0: TROUBLES[10]}) as (url, *_), tab(browser, url, scheme="dark") as page:
        page.goto("/")
        expect(page.get_by_role("heading", level=1)).to_have_text("1 of 1 nodes is not at size")
        row = page.locator(".nodes > li")
        expect(row).to_contain_text("CreateNetworkInterface has to wait")
        expect(row).to_contain_text(re.compile(r"waits \d+ s"))
        page.get_by_role("link", name="every 10 s").click()
        expect(page.locator("meta[http-equiv=refresh]")).to_have_attribute("content", "10")
        page.get_by_role("link", name="stop").click()
        expect(page.locator("meta[http-equiv=refresh]")).to_have_count(0)
