"""The EC2s: both for the shared contract, a fresh sandbox per test for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contract.ec2_servers import Cloud, Sandbox, moto_cloud, sandbox_cloud, sandbox_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=["sandbox", "moto"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    with (sandbox_cloud if request.param == "sandbox" else moto_cloud)() as target:
        yield target


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with sandbox_server() as target:
        yield target


class Clock:
    """A clock that stands until `advance`."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(clock: Clock) -> Iterator[Sandbox]:
    """A sandbox that lives by `clock`."""
    with sandbox_server(clock) as target:
        yield target
