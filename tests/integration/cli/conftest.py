"""Commands in this process, against real servers; what they send stays in Redis, since no worker listens."""

from __future__ import annotations

import pumped
import pytest
from commands import Commands


@pytest.fixture
def cli(system: pumped.System, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("ENI_TASKS_CLUSTER", system.cluster)
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", redis_url)
    return Commands(system)
