"""The two Kubernetes APIs, each started once per session: every test leaves them as it found them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contract.kube_servers import KubeTarget, real_server, sandbox_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def sandbox_kube() -> Iterator[KubeTarget]:
    with sandbox_server() as target:
        yield target


@pytest.fixture(scope="session")
def real_kube() -> Iterator[KubeTarget]:
    with real_server() as target:
        yield target
