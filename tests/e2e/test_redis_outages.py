"""Every process survives an outage of Redis: it goes and comes back, with its data or without, or falls silent."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from unsteady import END_SECONDS, PROCESSES, WORKERS
from waiting import until

if TYPE_CHECKING:
    from unsteady import Unsteady

pytestmark = pytest.mark.usefixtures("at_rest")


def test_p02_redis_comes_back_empty_to_idle_workers(system: Unsteady) -> None:
    system.redis_goes_away(keeps_its_data=False)
    system.redis_comes_back()
    system.all_queues_are_served()
    assert system.sandbox.children.dead() == []


def test_p02_redis_comes_back_to_busy_workers(system: Unsteady) -> None:
    before = {name: system.said(name, "broker_connection_lost") for name in WORKERS}
    system.makes_all_workers_busy()
    system.redis_goes_away(keeps_its_data=True)
    system.redis_comes_back()
    system.all_queues_are_served()
    until(system.quiet, "what was in hand is done")
    assert system.sandbox.children.dead() == []
    assert any(system.said(name, "broker_connection_lost") > before[name] for name in WORKERS), (
        "a worker had work in hand"
    )
    assert system.clean()


def test_p02_connections_that_hang_half_open(system: Unsteady) -> None:
    system.makes_all_workers_busy()
    system.wire.silence()
    seconds = system.all_queues_are_served()
    print(f"\nall queues were served {seconds:.0f} s after their connections had gone silent")  # noqa: T201
    assert system.sandbox.children.dead() == []
    until(system.quiet, "what was in hand is done")
    assert system.clean()


def test_p12_redis_is_emptied_in_mid_work(system: Unsteady) -> None:
    system.makes_all_workers_busy()
    system.redis.flushall()
    system.all_queues_are_served()
    until(system.quiet, "all pools at size")
    assert system.clean()


def test_p02_a_worker_that_consumes_nothing_gives_no_sign_of_life(system: Unsteady) -> None:
    system.start("resync", "deaf")
    until(lambda: system.ready("deaf"), "it serves")
    host = f"resync-{system.child('deaf').pid}@{socket.gethostname()}"
    control, there = system.app.control, {"destination": [host], "reply": True, "timeout": 0.5}
    until(lambda: control.cancel_consumer("resync", **there), "it consumes nothing")
    until(lambda: system.silent_seconds("deaf") > 3, "its file grows old")
    # What a heartbeat would show: its loop turns, and it answers.
    until(lambda: control.ping(destination=[host], timeout=2) == [{host: {"ok": "pong"}}], "it answers")
    assert system.silent_seconds("deaf") > 3
    control.add_consumer("resync", **there)
    until(lambda: system.silent_seconds("deaf") < 2, "it listens again")
    system.ends("deaf")


def test_all_end_while_redis_is_lost(system: Unsteady) -> None:
    system.wire.silence()  # no process learns that it went
    system.redis_goes_away(keeps_its_data=True)
    try:
        until(lambda: not system.ready("watcher"), "ticks have failed, and heartbeats too")
        for name in PROCESSES:
            system.child(name).terminate()
        codes = {name: system.child(name).wait(END_SECONDS) for name in PROCESSES}
    finally:
        system.redis_comes_back()
        for name in PROCESSES:
            system.child(name).kill()
            system.start(name)
    assert codes == dict.fromkeys(PROCESSES, 0)
