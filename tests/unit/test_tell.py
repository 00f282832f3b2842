"""Telling is bounded: per node, per process and in time; and it is never in the way."""

from __future__ import annotations

import threading
import time

import pytest
from waiting import until

from eni_tasks.errors import ClusterRefused
from eni_tasks.model.node_event import NodeEvent
from eni_tasks.observability.counters import Counters, Series
from eni_tasks.services import tell
from eni_tasks.services.tell import Bucket, Teller

SECONDS = 20.0


def event(node: int = 1, reason: str = "AtCapacity", message: str = "full") -> NodeEvent:
    return NodeEvent(node=f"node-{node}", uid=f"uid-{node}", reason=reason, message=message, warning=True)


class Writer:
    """Keeps what it is given; may be slow, or fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.written: list[NodeEvent] = []
        self.open = threading.Event()
        self.open.set()

    def write(self, event: NodeEvent) -> None:
        self.open.wait(SECONDS)
        if self.error:
            raise self.error
        self.written.append(event)


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when the test lets it."""

    class Clock:
        now = 1000.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(tell, "time", clock)
    return clock


def counted(counters: Counters, sums: dict[str, float]) -> dict[str, float]:
    """The outcomes so far."""
    for (name, _, labels), value in counters.drain().items():
        assert name == "kube_events_total"
        sums[labels[0]] = sums.get(labels[0], 0) + value
    return sums


def test_the_same_is_told_once_and_again_after_a_while(clock):
    writer = Writer()
    teller = Teller(writer, Counters())
    for _ in range(3):
        teller.tell([event()])
    until(lambda: len(writer.written) == 1, "it is told")
    teller.tell([event(message="fuller")])
    clock.now += tell.REPEAT_SECONDS
    teller.tell([event(message="fuller")])
    until(lambda: len(writer.written) == 3, "a change, and the repetition, are told")
    assert [each.message for each in writer.written] == ["full", "fuller", "fuller"]


def test_one_node_can_not_use_up_what_others_may_tell(clock):
    writer, counters, sums = Writer(), Counters(), {}
    teller = Teller(writer, counters)
    for number in range(30):
        teller.tell([event(message=f"full {number}")])
    teller.tell([event(node=2)])
    until(lambda: len(writer.written) == tell.NODE_BURST + 1, "ten of the one, and the one of the other")
    assert writer.written[-1].node == "node-2"
    until(lambda: counted(counters, sums) == {"written": 11, "left_out": 20}, "all are counted")
    clock.now += tell.NODE_SECONDS
    teller.tell([event(message="later"), event(message="much later")])
    until(lambda: len(writer.written) == tell.NODE_BURST + 2, "one more a minute")


def test_a_fleet_in_trouble_does_not_flood_the_api_server(clock):
    writer, counters, sums = Writer(), Counters(), {}
    teller = Teller(writer, counters)
    teller.tell(event(node=number) for number in range(500))
    expected = {"written": tell.PROCESS_BURST, "left_out": 500 - tell.PROCESS_BURST}
    until(lambda: counted(counters, sums) == expected, "a burst is written")
    # What was left out is told when there is room: it does not count as told.
    clock.now += 10 * tell.PROCESS_SECONDS
    teller.tell(event(node=number) for number in range(500))
    until(lambda: len(writer.written) == tell.PROCESS_BURST + 10, "ten more")
    assert len({each.node for each in writer.written}) == len(writer.written)


def test_a_slow_api_server_holds_nothing_up(monkeypatch):
    monkeypatch.setattr(tell, "PROCESS_BURST", 10_000)
    writer, counters = Writer(), Counters()
    writer.open.clear()
    teller = Teller(writer, counters)
    began = time.monotonic()
    teller.tell(event(node=number) for number in range(3000))
    assert time.monotonic() - began < SECONDS / 2
    writer.open.set()
    # The one in the writer's hands, and those that found room.
    until(lambda: len(writer.written) >= tell.QUEUE_LENGTH, "those that found room are written")
    assert len(writer.written) <= tell.QUEUE_LENGTH + 1


@pytest.mark.parametrize("error", [ClusterRefused("no rights"), RuntimeError("a bug")])
def test_what_can_not_be_written_is_counted_and_the_next_is_tried(error, capsys):
    writer, counters, sums = Writer(error), Counters(), {}
    teller = Teller(writer, counters)
    teller.tell([event()])
    until(lambda: counted(counters, sums) == {"failed": 1}, "it is counted")
    writer.error = None
    teller.tell([event(node=2)])
    until(lambda: counted(counters, sums) == {"failed": 1, "written": 1}, "the next one is written")


def test_a_bucket_never_holds_more_than_its_size():
    bucket = Bucket(2, 10.0, 0.0)
    assert [bucket.take(now) for now in (0, 0, 0, 9, 10, 1000, 1000, 1000)] == [
        *(True, True, False, False, True),
        *(True, True, False),
    ]


def test_old_nodes_are_forgotten(monkeypatch, clock):
    monkeypatch.setattr(tell, "NODES_COUNT", 3)
    monkeypatch.setattr(tell, "PROCESS_BURST", 10_000)
    teller = Teller(Writer(), Counters())
    teller.tell(event(node=number) for number in range(10))
    assert list(teller._told) == ["uid-7", "uid-8", "uid-9"]


def test_a_series_of_the_counter_exists():
    counters = Counters()
    Teller(Writer(), counters)._count("left_out")
    assert counters.drain() == {Series("kube_events_total", "", ("left_out",)): 1}
