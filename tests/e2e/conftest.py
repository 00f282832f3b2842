"""What the tests of whole systems share: unsteady wires, a browser, and the logs of a system whose test fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import unsteady
from browsing import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def system() -> Iterator[unsteady.Unsteady]:
    """A system with a few nodes, for the tests of a file; files that need another one make their own."""
    with unsteady.running() as system:
        system.fleet.add(6, types=("m5.xlarge",))
        yield system


@pytest.fixture
def at_rest(system: unsteady.Unsteady) -> None:
    """Nothing is left of an earlier test."""
    system.comes_to_rest()


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
