"""What is told of a node while the whole system works on it, by the services themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from waiting import until

from eni_tasks.observability.counters import Counters
from eni_tasks.services.tell import Teller

if TYPE_CHECKING:
    from pumped import System

    from eni_tasks.model.node_event import NodeEvent

PODS = {"first-interface-index": 1}


class Heard:
    """Keeps what is told; `broken` makes every write fail with a bug."""

    def __init__(self) -> None:
        self.events: list[NodeEvent] = []
        self.broken = False

    def write(self, event: NodeEvent) -> None:
        if self.broken:
            raise RuntimeError("a bug")
        self.events.append(event)

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


@pytest.fixture
def heard(system: System) -> Heard:
    heard = Heard()
    system.services.publish._teller = Teller(heard, Counters())
    return heard


def test_a_created_interface_is_told_once(system: System, heard: Heard) -> None:
    system.add_node(eni=PODS)
    system.settle()
    until(heard.reasons, "something is told")
    system.use(1)
    system.settle()
    system.resync()
    assert heard.reasons() == ["InterfaceCreated"]
    assert heard.events[0].uid == system.object()["metadata"]["uid"]


def test_a_refused_right_is_told(system: System, heard: Heard) -> None:
    system.ec2.set_knobs(denied_actions=["CreateNetworkInterface"])
    system.add_node(eni=PODS)
    system.settle()
    until(heard.reasons, "something is told")
    assert set(heard.reasons()) == {"Ec2Refused"}
    assert "UnauthorizedOperation" in heard.events[0].message


def test_a_node_at_capacity_is_told_though_its_object_shows_nothing_of_it(system: System, heard: Heard) -> None:
    system.add_node(instance_type="t3.medium", ipam={"min-allocate": 30})  # it can carry 15
    system.settle()
    until(lambda: "AtCapacity" in heard.reasons(), "it is told")
    assert "error" not in system.object()["status"]["ipam"].get("operator-status", {})
    writes = system.messages.sent.copy()
    system.resync()
    system.resync()
    assert system.messages.sent == writes + type(writes)(fleet=2), "it is told once, and nothing is done again"


def test_what_goes_wrong_while_telling_stops_nothing(system: System, heard: Heard, monkeypatch) -> None:
    heard.broken = True
    system.add_node(eni=PODS)
    system.settle()
    assert system.status().ready

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("eni_tasks.services.publish.node_events", broken)
    system.add_node("second", eni=PODS)
    system.settle()
    assert system.status("second").ready
