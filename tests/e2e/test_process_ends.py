"""Processes that end, well or badly, and what takes over from them: workers, the watcher, the API server."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from unsteady import END_SECONDS
from waiting import until

from eni_tasks.model.work import WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from unsteady import Unsteady

pytestmark = pytest.mark.usefixtures("at_rest")


def test_p06_the_api_server_is_started_again(system: Unsteady) -> None:
    gone = system.fleet.names[-1]
    grown = next(name for name in system.smallest() if name != gone)
    size = len(system.pool(grown))
    system.use_more(grown, 1)  # its object can't be written at first
    system.child("kubernetes-api").kill()
    until(lambda: not system.ready("watcher"), "the watcher sees nothing any more")
    system.sandbox.children.again("kubernetes-api")
    system.forget(gone)
    until(lambda: gone not in system.views(), "the deletion is noticed")
    until(lambda: len(system.pool(grown)) > size, "the object is written")
    system.all_queues_are_served()


def test_a_worker_that_is_killed_in_mid_work(system: Unsteady) -> None:
    system.reset()
    system.ec2.set_knobs(latency_seconds={"*": 0.05})
    system.fleet.add(20, ipam={"pre-allocate": 20})
    until(lambda: system.calls().get("AttachNetworkInterface", 0) > 3, "it is in the middle")
    worker = system.child("ec2")
    worker.kill()
    worker.wait()
    assert not system.full(len(system.fleet.names)), "it had more to do"
    system.start("ec2")
    until(system.quiet, "all pools at size")
    assert system.clean()


def test_a_worker_that_is_told_to_end_hands_its_node_over(system: Unsteady) -> None:
    system.reset()
    # Late enough for the answer to be held then, until the worker knows that it is to end.
    system.ec2.add_faults(Fault(action="CreateNetworkInterface", delay_seconds=2.0))
    system.fleet.add(1, types=("m5.large",), ipam={"pre-allocate": 20})  # two more interfaces
    until(lambda: system.calls().get("CreateNetworkInterface"), "the worker waits for EC2's answer")
    system.ec2_wire.hold_answers()
    ending = system.child("ec2")
    ending.terminate()
    until(lambda: not system.ready("ec2"), "it has understood")
    for number in (signal.SIGTERM, signal.SIGINT):  # impatience changes nothing
        ending.send_signal(number)
    system.ec2_wire.release_answers()
    assert ending.wait(END_SECONDS) == 0
    assert system.claimed(WorkKind.MAINTAIN) == [], "it gave its claim back"
    with system.caller("successor"):
        system.start("ec2")
    until(system.quiet, "its successor goes on, until the new node's pool is at size")
    assert [call.caller for call in system.ec2.calls("CreateNetworkInterface")] == ["sandbox", "successor"]
    assert system.calls()["AttachNetworkInterface"] == 2
    assert system.clean()


def test_a_watcher_that_is_told_to_end_ends_soon(system: Unsteady) -> None:
    system.ends("watcher")
    system.start("watcher")
