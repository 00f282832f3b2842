"""Every process survives a bad day of Redis or of the API server, and ends well when it is told to."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest
import unsteady
from unsteady import PROCESSES, WORKERS, Unsteady
from whole import until

from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def system() -> Iterator[Unsteady]:
    with unsteady.running() as system:
        system.fleet.add(6, types=("m5.xlarge",))
        yield system


@pytest.fixture(autouse=True)
def at_rest(system: Unsteady) -> None:
    until(
        lambda: system.ready(*PROCESSES) and system.quiet(), "everybody serves, and nothing is left to do", seconds=45
    )


# -- Redis -----------------------------------------------------------------------------------------
def test_p02_redis_comes_back_empty_to_idle_workers(system: Unsteady) -> None:
    system.redis_goes_away(keeps_its_data=False)
    system.redis_comes_back()
    system.everybody_consumes(seconds=30)
    assert system.sandbox.children.dead() == []


def test_p02_redis_comes_back_to_busy_workers(system: Unsteady) -> None:
    before = {name: system.said(name, "broker_connection_lost") for name in WORKERS}
    system.makes_everybody_busy(seconds=4.0)
    system.redis_goes_away(keeps_its_data=True)
    system.redis_comes_back()
    system.everybody_consumes(seconds=30)
    until(system.quiet, "what was in hand is done")
    assert system.sandbox.children.dead() == []
    assert any(system.said(name, "broker_connection_lost") > before[name] for name in WORKERS), "no worker had a task"
    assert system.clean()


def test_p02_connections_that_hang_half_open(system: Unsteady) -> None:
    system.makes_everybody_busy(seconds=2.0)
    system.wire.silence()
    seconds = system.everybody_consumes(seconds=60)
    print(f"\nall queues were served {seconds:.0f} s after their connections had gone silent")  # noqa: T201
    assert system.sandbox.children.dead() == []
    until(system.quiet, "what was in hand is done")
    assert system.clean()


def test_p12_redis_is_emptied_in_mid_work(system: Unsteady) -> None:
    system.makes_everybody_busy(seconds=2.0)
    system.redis.flushall()
    system.everybody_consumes(seconds=30)
    until(system.quiet, "all pools at size")
    assert system.clean()


def test_p02_a_worker_that_consumes_nothing_gives_no_sign_of_life(system: Unsteady) -> None:
    system.start("resync", "deaf")
    until(lambda: system.ready("deaf"), "it serves")
    host = f"resync-{system.child('deaf').pid}@{socket.gethostname()}"
    control, there = system.app.control, {"destination": [host], "reply": True, "timeout": 0.5}
    until(lambda: control.cancel_consumer("resync", **there), "it is told to consume nothing", seconds=20)
    until(lambda: system.silent_seconds("deaf") > 3, "its file grows old", seconds=20)
    # What a heartbeat would show: its loop turns, and it answers.
    assert control.ping(destination=[host], timeout=2) == [{host: {"ok": "pong"}}]
    control.add_consumer("resync", **there)
    until(lambda: system.silent_seconds("deaf") < 2, "it listens again", seconds=20)
    system.ends("deaf")


# -- the API server --------------------------------------------------------------------------------
def test_p06_the_api_server_is_started_again(system: Unsteady) -> None:
    gone = system.fleet.names[-1]
    grown = next(name for name in system.smallest() if name != gone)
    size = len(system.pool(grown))
    system.use_more(grown, 1)  # its object can't be written at first
    system.child("kubernetes-api").kill()
    until(lambda: not system.ready("watcher"), "the watcher sees nothing any more", seconds=20)
    system.sandbox.children.again("kubernetes-api")
    system.forget(gone)
    until(lambda: gone not in system.views(), "the deletion is noticed", seconds=30)
    until(lambda: len(system.pool(grown)) > size, "the object is written", seconds=30)
    system.everybody_consumes(seconds=30)


# -- the end ---------------------------------------------------------------------------------------
def test_a_worker_that_is_told_to_end_hands_its_node_over(system: Unsteady) -> None:
    system.reset()
    system.ec2.add_faults(Fault(action="CreateNetworkInterface", delay_seconds=3.0))
    system.fleet.add(1, types=("m5.large",), ipam={"pre-allocate": 20})  # two more interfaces
    until(lambda: system.calls().get("CreateNetworkInterface"), "the worker waits for EC2's answer")
    system.sandbox.environment["AWS_ACCESS_KEY_ID"] = "successor"
    system.start("ec2", "successor")
    ending = system.child("ec2")
    ending.terminate()
    until(lambda: not system.ready("ec2"), "it has understood", seconds=10)
    for number in (signal.SIGTERM, signal.SIGINT):  # impatience changes nothing
        ending.send_signal(number)
    assert ending.wait(20) == 0
    until(lambda: system.ready("successor"), "its successor serves")
    # A claim that was not given back would be waited for: 11 s of lease, and 4 s until the sweep.
    until(lambda: len(system.ec2.calls("CreateNetworkInterface")) == 2, "its successor goes on", seconds=8)
    until(system.quiet, "the new node's pool is at size")
    assert [call.caller for call in system.ec2.calls("CreateNetworkInterface")] == ["sandbox", "successor"]
    assert system.calls()["AttachNetworkInterface"] == 2
    assert system.clean()
    system.sandbox.environment["AWS_ACCESS_KEY_ID"] = "sandbox"
    system.start("ec2")
    system.ends("successor")


def test_a_watcher_that_is_told_to_end_ends_soon(system: Unsteady) -> None:
    system.ends("watcher")
    system.start("watcher")


def test_all_end_while_redis_is_lost(system: Unsteady) -> None:
    system.wire.silence()  # nobody is told that it went
    system.redis_goes_away(keeps_its_data=True)
    until(lambda: not system.ready("watcher"), "ticks have failed, and heartbeats too", seconds=20)
    for name in PROCESSES:
        system.child(name).terminate()
    codes = {name: system.child(name).wait(20) for name in PROCESSES}
    system.redis_comes_back()
    for name in PROCESSES:
        system.start(name)
    assert codes == dict.fromkeys(PROCESSES, 0)
