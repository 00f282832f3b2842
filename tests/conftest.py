"""What holds for all tests: their kinds and order, the clock, and what is loaded once per process."""

import functools
from collections.abc import Iterator
from pathlib import Path

import botocore.session
import pytest
from hypothesis import settings

from eni_tasks.state import connection

# Each test makes clients of its own, and each of them would read and parse the description of EC2's API again: up to
# half a second. The loader holds that description and nothing else.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

# How long an example takes is the machine's business.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

KINDS = ("e2e", "contract", "integration", "unit")
# Files that take long, the longest first. One that starts last leaves all workers but its own without work.
LONG_FILES = (
    *("test_redis_outages.py", "test_process_ends.py", "test_alerts_fire.py", "test_small_fleet.py"),
    *("test_interrupt_everything.py", "test_cli_sandbox.py", "test_chaos.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests, and begin with those that take long; else their order stays random."""
    root = Path(__file__).parent

    def rank(item: pytest.Item) -> tuple[int, int]:
        kind, name = item.path.relative_to(root).parts[0], item.path.name
        long = LONG_FILES.index(name) if name in LONG_FILES else len(LONG_FILES)
        return (KINDS.index(kind) if kind in KINDS else len(KINDS), long)

    for item in items:
        kind = item.path.relative_to(root).parts[0]
        if kind in KINDS:
            item.add_marker(kind)
    items.sort(key=rank)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how the order of this run can be had again: `-q` hides the plugin's own line."""
    seed = getattr(config.option, "randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f"order: --randomly-seed={seed}")


@pytest.fixture(autouse=True)
def real_time() -> Iterator[None]:
    """Each test begins and ends with Redis' own time, whatever it did to the clock."""
    yield
    connection.advance_clock(-connection.clock_offset_seconds())
