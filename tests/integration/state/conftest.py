from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis_servers
from state_under_test import State

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", params=redis_servers.KINDS)
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if redis_servers.program(request.param) is None:
        pytest.skip("redis-server is not installed; the same tests ran on Valkey")
    with redis_servers.running(request.param) as url:
        yield url


@pytest.fixture
def state(redis_url: str) -> Iterator[State]:
    state = State(redis_url)
    yield state
    state.client.close()
