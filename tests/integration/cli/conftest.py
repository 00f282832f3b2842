"""Commands in this process, against real servers; what they send stays in Redis, since no worker listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest
import redis_servers
from commands import Commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with redis_servers.running() as url:
        yield url


@pytest.fixture
def system(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pumped.System]:
    with pumped.running(redis_url, tmp_path, monkeypatch) as system:
        yield system


@pytest.fixture
def cli(system: pumped.System, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("ENI_TASKS_CLUSTER", system.cluster)
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", redis_url)
    return Commands(system)
