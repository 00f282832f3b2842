"""Flower in a real browser, as a person uses it at night: log in, look, find a node, start a task, read its report.

With SCREENSHOTS set to a folder, the pictures of docs/operations.md are taken on the way (`make screenshots`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import picture
from flower_under_test import AUTH, Flower, flower
from playwright.sync_api import Error, Page, expect
from waiting import until
from whole import QUICK, System

from eni_tasks.exporter.page.links import Links
from eni_tasks.sandbox.running import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

NODES = 6
PREFIX = "/flower"
SIZE: Any = {"width": 1280, "height": 560}
START_TASK = """async ([path, args]) => {
    const answer = await fetch(path, {method: "POST", body: JSON.stringify({args})});
    return [answer.status, await answer.json()];
}"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[tuple[System, Flower]]:
    """A small fleet at size, and Flower with a password and a prefix."""
    with Sandbox(settings=QUICK, with_flower=False) as sandbox:
        system = System(sandbox)
        # Flower first: what happens before it listens it never learns.
        settings = {"ENI_TASKS_FLOWER_AUTH": AUTH, "ENI_TASKS_FLOWER_URL_PREFIX": PREFIX}
        with flower(tmp_path, **{**sandbox.environment, **settings}) as window:
            until(lambda: len(window.json(PREFIX + "/workers?json=1")["data"]) == 3, "three workers")
            system.fleet.add(NODES)
            until(system.quiet, "all pools at size")
            yield system, window
        system.close()


@pytest.fixture
def page(browser: Browser, system: tuple[System, Flower]) -> Iterator[Page]:
    """A page whose user knows the password."""
    user, _, password = AUTH.partition(":")
    context = browser.new_context(
        base_url=system[1].address, http_credentials={"username": user, "password": password}, viewport=SIZE
    )
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    yield page
    context.close()
    assert troubles == []


# One test, since each start of the whole system costs seconds; its steps below.
def test_a_night_with_flower(browser: Browser, system: tuple[System, Flower], page: Page) -> None:
    a_stranger_sees_nothing(browser, system[1].address)
    the_workers_of_the_three_queues_are_seen(page)
    a_node_is_found_and_maintained(page)
    the_status_page_leads_to_a_nodes_tasks(page, system[1].address)
    a_wrong_argument_is_refused_in_words(page)


def a_stranger_sees_nothing(browser: Browser, address: str) -> None:
    with (
        browser.new_context(base_url=address) as context,
        pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"),
    ):
        context.new_page().goto(f"{PREFIX}/tasks")


def the_workers_of_the_three_queues_are_seen(page: Page) -> None:
    page.goto(f"{PREFIX}/")
    for queue in ("ec2", "apiserver", "resync"):
        row = page.locator("tbody tr", has_text=f"{queue}-")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("Online")
    page.get_by_role("link", name="Broker").click()
    for queue in ("ec2", "apiserver", "resync"):
        expect(page.locator("tbody tr", has_text=queue).first).to_contain_text("0")


def a_node_is_found_and_maintained(page: Page) -> None:
    page.goto(f"{PREFIX}/")
    page.get_by_role("link", name="Tasks").click()
    page.get_by_role("searchbox").fill("node-0003")
    rows = page.locator("#tasks-table tbody tr")
    expect(rows.filter(has_text="node-0003").filter(has_text="eni.maintain_node").first).to_be_visible()
    expect(rows.filter(has_text="eni.publish_node").first).to_contain_text("['status', 'spec']")
    expect(rows.filter(has_text="node-0001")).to_have_count(0)
    picture(page, "flower-tasks")

    status, answer = page.evaluate(START_TASK, [f"{PREFIX}/api/task/async-apply/eni.maintain_node", ["node-0003"]])
    assert status == 200

    def done() -> bool:
        page.goto(f"{PREFIX}/task/{answer['task-id']}")
        return page.get_by_text("SUCCESS", exact=True).is_visible()

    until(done, "the task's end")
    details = page.get_by_label("Task details")
    for words in ("eni.maintain_node", "['node-0003']", "'reason': 'at-size'", "node-0003 holds 8 addresses"):
        expect(details).to_contain_text(words)
    picture(page, "flower-task")


def the_status_page_leads_to_a_nodes_tasks(page: Page, address: str) -> None:
    page.goto(Links(flower=address + PREFIX, grafana="", cluster="").tasks("node-0002"))
    rows = page.locator("#tasks-table tbody tr")
    expect(rows.filter(has_text="node-0002").filter(has_text="eni.maintain_node").first).to_be_visible()
    expect(rows.filter(has_text="node-0003")).to_have_count(0)


def a_wrong_argument_is_refused_in_words(page: Page) -> None:
    page.goto(f"{PREFIX}/")
    status, answer = page.evaluate(START_TASK, [f"{PREFIX}/api/task/async-apply/eni.maintain_node", ["Bad_Name"]])
    assert status == 200

    def failed() -> bool:
        page.goto(f"{PREFIX}/task/{answer['task-id']}")
        return page.get_by_text("FAILURE", exact=True).is_visible()

    until(failed, "the task's end")
    expect(page.get_by_label("Task details")).to_contain_text("'Bad_Name' is not the name of a node")
