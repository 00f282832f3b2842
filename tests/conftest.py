"""Marks each test by the folder it lives in, so that a kind can be chosen with -m; one clock, one EC2 model."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from hypothesis import settings

from eni_tasks.state import connection

# How long an example takes is the machine's business.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Each boto3 session unpacks EC2's model again, 0.3 s of CPU: here all sessions of a process share one loader. It
# holds files of the package alone, no credentials and no sockets.
botocore.session.create_loader = cache(botocore.session.create_loader)

KINDS = ("unit", "contract", "integration", "e2e")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        kind = item.path.relative_to(root).parts[0]
        if kind in KINDS:
            item.add_marker(kind)


@pytest.fixture(autouse=True)
def real_time() -> Iterator[None]:
    """Each test begins and ends with Redis' own time, whatever it did to the clock."""
    yield
    connection.advance_clock(-connection.clock_offset_seconds())
