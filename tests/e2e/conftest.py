"""A whole system whose test fails keeps the logs of its processes, and the failure says where they are."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    system = getattr(item, "funcargs", {}).get("system")
    if report.failed and hasattr(system, "keep_logs"):
        report.sections.append(("logs of the processes", str(system.keep_logs())))
    return report
