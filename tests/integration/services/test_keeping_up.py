"""The watchdog: a deficit that no worker serves, and reads that don't come, are noticed whatever holds them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest
from structlog.testing import capture_logs

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Pass
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


class Ticking:
    """A watcher's ticks, and what they log of the fleet's progress."""

    def __init__(self, system: System) -> None:
        self._ticker = system.services.ticker(lambda: None)
        self.keeps_up = True
        self()
        system.messages.waiting.clear()

    def __call__(self) -> bool:
        """Tick; returns whether the system keeps up, as the log has it."""
        with capture_logs() as logs:
            self._ticker.tick()
        for line in logs:
            if line["event"] in ("falls_behind", "keeps_up"):
                self.keeps_up = line["event"] == "keeps_up"
        return self.keeps_up


def test_a_deficit_that_is_not_served(system: System) -> None:
    """B67: the message was lost and requeuing brought nothing either; it is over when the pool is at size."""
    system.add_node()
    system.settle()
    tick = Ticking(system)
    system.use(3)
    system.ingest()
    system.services.refresh.read_inventory()
    system.messages.waiting.clear()
    system.later(STUCK_SECONDS - 10)
    assert tick()
    system.messages.waiting.clear()
    system.later(11)
    assert not tick()
    progress = system.services.state.coordination.progress()
    assert progress.deficit_node == "node"
    assert progress.deficit_since is not None
    system.resync()
    system.settle(within_seconds=60)
    assert system.status().ready
    assert tick()
    assert system.services.state.coordination.progress().deficit_node is None


def test_a_node_that_can_hold_no_more_is_no_deficit_of_ours(system: System) -> None:
    system.add_node(instance_type="t3.medium", ipam={"min-allocate": 50})
    system.settle()
    assert system.status().reason == "at-capacity"
    assert system.services.state.coordination.progress().deficit_node is None


def test_a_node_that_is_not_read(system: System) -> None:
    system.ingest()
    tick = Ticking(system)
    system.add_node()
    system.ingest()
    system.later(STUCK_SECONDS + 1)
    assert not tick()


def test_reads_that_fail_for_long(system: System) -> None:
    system.add_node()
    system.settle()
    system.services.refresh.read_inventory()
    tick = Ticking(system)
    system.ec2.add_faults([Fault(action="Describe*", code="AuthFailure", times=None)])
    for _ in range(12):
        system.later(60)
        system.resync()
    assert not tick()
    system.ec2.clear_faults()
    system.resync()
    assert tick()


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
    assert report["explanation"][-1] == "Nodes in deficit that are tried again now: 3. EC2 is read again."
    system.pump()
    assert all(system.pool(f"node-{number}") for number in range(3))


def test_a_requested_read_beside_a_full_read_each_second(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch, resync_seconds=1) as system:
        system.add_node()
        system.settle()
        ticker = system.services.ticker(lambda: None)
        ticker.tick()
        system.pump()
        system.services.state.reads.request([NodeName("node")])
        system.redis.delete(system._keys.slot("inventory"))  # a second later
        ticker.tick()
        assert [name for _, name in system.messages.waiting] == [Pass.INVENTORY, Pass.INSTANCES]
