"""What holds for all tests: their kinds and order, the clock, and what is loaded once per process."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.client import ClientCreator
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from eni_tasks.state import connection

# Each test makes clients of its own, and each of them would read and parse the description of EC2's API again, and make
# a method for each of its 800 actions. The loader, the model and the class hold what follows from that description, and
# nothing else.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)


def once_per_service(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of botocore's that makes the same for a service each time."""
    made: dict[str, Any] = {}

    @functools.wraps(method)
    def kept(self: Any, service_name: str, *args: Any, **options: Any) -> Any:
        if service_name not in made:
            made[service_name] = method(self, service_name, *args, **options)
        return made[service_name]

    return kept


for name in ("_load_service_model", "_create_client_class"):
    setattr(ClientCreator, name, once_per_service(getattr(ClientCreator, name)))

# How long an example takes is the machine's business.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

REAL_API_SERVER = ("tests/contract/kube/", "tests/contract/chart/")
KINDS = ("e2e", "contract", "integration", "unit")
WHOLE_SYSTEM_SECONDS = 600
# Files that take long, the longest first. One that starts last leaves all workers but its own without work.
LONG_FILES = (
    *("test_redis_outages.py", "test_chaos.py", "test_process_ends.py", "test_interrupt_everything.py"),
    *("test_alerts_fire.py", "test_small_fleet.py", "test_cli_sandbox.py"),
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
        if kind == "e2e":
            item.add_marker(pytest.mark.timeout(WHOLE_SYSTEM_SECONDS))
    items.sort(key=rank)


class ByServer(LoadFileScheduling):  # type: ignore[misc]
    """A file stays with one worker of xdist; so do all files that need the real API server, which is slow to start."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "the real API server" if file.startswith(REAL_API_SERVER) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByServer:
    return ByServer(config, log)


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
