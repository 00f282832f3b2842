"""The way from cilium-operator and back (docs/migration.md), with agents of 1.19 and 1.20: no address moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest
from pumped_agent import AgentOn

from eni_tasks.bootstrap import Services
from eni_tasks.sandbox.fleet import Agent, Agent120
from eni_tasks.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pumped import System

KINDS = pytest.mark.parametrize("kind", [Agent, Agent120], ids=["1.19", "1.20"])


@pytest.fixture
def releasing(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    options = {"release_excess": True, "release_delay_seconds": 180.0}
    with pumped.running(redis_url, tmp_path, monkeypatch, **options) as system:
        yield system


def served_node(system: System, kind: type[Agent], pods: int) -> AgentOn:
    system.add_node(ipam={"pre-allocate": 4})
    on = AgentOn(system, kind)
    system.settle()
    for count in range(4, pods + 1, 4):
        on.pods(count)
        system.settle()
    on.report()
    system.settle()
    return on


@KINDS
def test_taking_over_changes_nothing_and_goes_on(system: System, kind: type[Agent]) -> None:
    on = served_node(system, kind, 8)
    # What another operator served, an installation with an empty Redis takes over.
    pool = system.pool()
    system.empty_redis()
    system.fresh()
    system.settle(within_seconds=60)
    assert system.services.status.plan("node").plan.action is None
    system.resync()
    assert (system.mutations(), system.writes(), system.pool()) == ({}, {}, pool)
    on.pods(12)
    system.settle(within_seconds=60)
    assert len(system.pool()) == 16
    assert system.clean()


def test_marks_that_another_operator_left_are_taken_back(system: System) -> None:
    on = served_node(system, Agent, 8)
    address = max(system.pool())
    marks = {"release-ips": {address: "ready-for-release"}}
    system.change("node", lambda body: body["status"]["ipam"].update(marks), status=True)
    system.empty_redis()
    system.settle(within_seconds=60)
    system.resync()
    assert system.object()["status"].get("ipam", {}).get("release-ips", {}) == {}
    assert len(on.pods(12)) == 12
    assert system.clean()


@KINDS
def test_going_back_leaves_nothing_half_released(releasing: System, kind: type[Agent]) -> None:
    system = releasing
    on = served_node(system, kind, 12)
    held = {address for each in system.ec2.view().interfaces for address in each.addresses}
    on.pods(3)
    for _ in range(4):  # what is in excess is asked for, or has been given up
        system.later(45)
        system.resync()
        on.report()
    # The setting is turned off, and all processes are restarted.
    off = Services(Settings(**system._settings | {"release_excess": False}), system.messages)
    system.fresh()
    on.report()
    system.settle(off)
    system.resync(off)
    on.report()
    system.settle(off)
    assert system.object()["status"].get("ipam", {}).get("release-ips", {}) == {}
    assert set(system.pool()) == held
    assert system.mutations() == {}
    off.state.connection.client.close()
    # An operator of 1.19 hands on what the pool shows: an older agent finds it complete.
    on.upgrade(Agent)
    assert len(on.pods(12)) == 12
    assert system.clean()
