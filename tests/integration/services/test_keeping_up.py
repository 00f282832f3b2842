"""The watchdog: a deficit that no worker serves, and reads that don't come, are noticed whatever holds them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest

from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pumped import System

STUCK_SECONDS = 600.0


@pytest.fixture
def system(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    with pumped.running(redis_url, tmp_path, monkeypatch, stuck_seconds=STUCK_SECONDS) as system:
        yield system


def ticking(system: System) -> Any:
    ticker = system.services.ticker(lambda: None)
    assert ticker.tick()
    system.messages.waiting.clear()
    return ticker


def test_a_deficit_that_is_not_served(system: System) -> None:
    """B67: the message was lost and requeuing brought nothing either; it is over when the pool is at size."""
    system.add_node()
    system.settle()
    ticker = ticking(system)
    system.use(3)
    system.ingest()
    system.services.refresh.read_inventory()
    system.messages.waiting.clear()
    system.later(STUCK_SECONDS - 10)
    assert ticker.tick()
    system.messages.waiting.clear()
    system.later(11)
    assert not ticker.tick()
    progress = system.services.state.coordination.progress()
    assert progress.deficit_node == "node"
    assert progress.deficit_since is not None
    system.resync()
    system.settle(within_seconds=60)
    assert system.status().ready
    assert ticker.tick()
    assert system.services.state.coordination.progress().deficit_node is None


def test_a_node_that_can_hold_no_more_is_no_deficit_of_ours(system: System) -> None:
    system.add_node(instance_type="t3.medium", ipam={"min-allocate": 50})
    system.settle()
    assert system.status().reason == "at-capacity"
    assert system.services.state.coordination.progress().deficit_node is None


def test_a_node_that_is_not_read(system: System) -> None:
    system.ingest()
    ticker = ticking(system)
    system.add_node()
    system.ingest()
    system.later(STUCK_SECONDS + 1)
    assert not ticker.tick()


def test_reads_that_fail_for_long(system: System) -> None:
    system.add_node()
    system.settle()
    system.services.refresh.read_inventory()
    ticker = ticking(system)
    system.ec2.add_faults([Fault(action="Describe*", code="AuthFailure", times=None)])
    for _ in range(12):
        system.later(60)
        system.resync()
    assert not ticker.tick()
    system.ec2.clear_faults()
    system.resync()
    assert ticker.tick()


def test_a_node_that_is_gone_lacks_nothing(system: System) -> None:
    system.add_node()
    system.ingest()
    assert system.services.state.coordination.progress().deficit_node == "node"
    system.kube.store.delete("node")
    system.ingest()
    assert system.services.state.coordination.progress().deficit_node is None


def test_resume_ends_the_wait_of_every_node_that_lacks_addresses(system: System) -> None:
    system.ec2.set_knobs(denied_actions=["AssignPrivateIpAddresses"])
    for number in range(3):
        system.add_node(f"node-{number}")
    system.settle(within_seconds=5)
    assert not any(system.pool(f"node-{number}") for number in range(3))
    system.ec2.set_knobs(denied_actions=[])
    report = system.services.admin.resume()
    assert report["closed"] == ["AssignPrivateIpAddresses"]
    assert report["explanation"][-1] == "3 nodes that lack addresses continue at once, and everything is read again."
    system.pump()
    assert all(system.pool(f"node-{number}") for number in range(3))
