"""The servers that a test runs on, and fresh nodes per test."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from contract.kube_servers import NODES, KubeTarget, sandbox_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(params=["sandbox", "real"])
def kube(request: pytest.FixtureRequest) -> KubeTarget:
    target: KubeTarget = request.getfixturevalue(f"{request.param}_kube")
    return target


@pytest.fixture
def knobs(kube: KubeTarget, create: Any) -> Iterator[Callable[..., None]]:
    """Turns knobs of the sandbox for one test; the real server knows users and needs none.

    Asks for `create`, so that the knobs are back before the nodes are removed.
    """

    def turn(**values: Any) -> None:
        if kube.admin:
            kube.admin.set(**values)

    yield turn
    turn(denied=[], token="")


@pytest.fixture
def sandbox() -> Iterator[KubeTarget]:
    """A sandbox of its own, for tests that turn knobs."""
    with sandbox_server() as target:
        yield target


@pytest.fixture
def create(kube: KubeTarget) -> Iterator[Callable[..., dict[str, Any]]]:
    """Creates nodes with unique names, and removes what is left of them."""
    prefix, names = f"t{uuid.uuid4().hex[:8]}", []

    def create_one(suffix: str = "node", spec: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
        names.append(f"{prefix}-{suffix}")
        code, node = kube.call("POST", NODES, manifest(names[-1], spec, **parts))
        assert code == 201, node
        return node

    yield create_one
    for name in names:
        assert kube.call("DELETE", f"{NODES}/{name}")[0] in (200, 404)


def manifest(name: str, spec: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, **parts.pop("metadata", {})}
    spec = {} if spec is None else spec
    return {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": metadata, "spec": spec, **parts}
