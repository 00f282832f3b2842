"""A browser; and a whole system whose test fails keeps the logs of its processes, and says where they are."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browsing import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    system = getattr(item, "funcargs", {}).get("system")
    if report.failed and hasattr(system, "keep_logs"):
        report.sections.append(("logs of the processes", str(system.keep_logs())))
    return report
