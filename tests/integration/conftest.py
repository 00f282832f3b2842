"""A Redis for each worker of the tests, and the whole system on it, moved by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest
import redis_servers

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
