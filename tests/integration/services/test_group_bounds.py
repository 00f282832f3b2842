"""The settings bound the security groups that an object may select: what becomes of an object that leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PODS = {"first-interface-index": 1}  # the first interface is not for pods: a node needs one of ours


@pytest.fixture
def bounded(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pumped.System]:
    tags = {"purpose": "pods"}
    with pumped.running(redis_url, tmp_path, monkeypatch, security_group_tags=tags) as system:
        yield system


def test_an_object_that_names_a_group_outside_the_bounds_gets_no_interface(bounded: pumped.System) -> None:
    foreign, allowed = bounded.built.node_group, bounded.built.pod_group
    instance = bounded.add_node(eni=PODS | {"security-groups": [allowed, foreign]})
    bounded.settle(within_seconds=60)
    assert bounded.mutations() == {}
    status = bounded.status()
    assert (status.reason, status.ready) == ("security-group-not-allowed", False)
    error = bounded.object()["status"]["ipam"]["operator-status"]["error"]
    assert f"selects {foreign}, which ENI_TASKS_SECURITY_GROUP_TAGS does not allow" in error
    # The corrected object is served at once.
    bounded.change("node", lambda body: body["spec"]["eni"].update({"security-groups": [allowed]}))
    bounded.settle(within_seconds=10)
    assert bounded.interfaces(instance)[1].groups == (allowed,)
    assert bounded.status().ready
    assert "error" not in bounded.object()["status"]["ipam"].get("operator-status", {})
    assert bounded.clean()


def test_an_object_that_selects_no_group_gets_those_of_its_instance(bounded: pumped.System) -> None:
    instance = bounded.add_node(eni=PODS)
    bounded.settle(within_seconds=10)
    assert bounded.interfaces(instance)[1].groups == (bounded.built.node_group,)
    assert bounded.status().ready
    assert bounded.clean()
