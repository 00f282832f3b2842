"""The sums of all processes: added in one go, read by all, begun again when Redis was emptied."""

from __future__ import annotations

import time

import redis_servers
from state_under_test import State

from eni_tasks.observability.counters import Counters, Series
from eni_tasks.services.flush_counters import CounterFlusher

OPS = "ipam_ip_allocation_ops"


def test_processes_add_up(state: State) -> None:
    for subnet, count in (("a", 3), ("b", 2), ("a", 4)):
        counters = Counters()
        counters.count(OPS, {"subnet_id": subnet}, count)
        counters.observe("ec2_api_duration_seconds", {"operation": "A", "response_code": 'odd,"code'}, 0.2)
        CounterFlusher(counters, state.counters).flush()
    sums = state.counters.read()
    assert sums[Series(OPS, "", ("a",))] == 7
    assert sums[Series(OPS, "", ("b",))] == 2
    assert sums[Series("ec2_api_duration_seconds", "0.25", ("A", 'odd,"code'))] == 3


def test_a_process_brings_its_counts_while_it_runs(state: State, monkeypatch) -> None:
    monkeypatch.setattr("eni_tasks.services.flush_counters.INTERVAL_SECONDS", 0.01)
    counters, deadline = Counters(), time.monotonic() + 10
    with CounterFlusher(counters, state.counters):
        counters.count(OPS, {"subnet_id": "a"})
        while not (brought := state.counters.read()):
            assert time.monotonic() < deadline
    assert brought == {Series(OPS, "", ("a",)): 1}


def test_a_process_brings_the_rest_at_its_end(state: State) -> None:
    counters = Counters()
    with CounterFlusher(counters, state.counters):
        counters.count(OPS, {"subnet_id": "a"})
    assert state.counters.read() == {Series(OPS, "", ("a",)): 1}


def test_an_emptied_redis_begins_at_zero(state: State) -> None:
    counters = Counters()
    flusher = CounterFlusher(counters, state.counters)
    counters.count(OPS, {"subnet_id": "a"}, 5)
    flusher.flush()
    state.client.delete(state.keys.counters)
    assert state.counters.read() == {}
    counters.count(OPS, {"subnet_id": "a"})
    flusher.flush()
    assert state.counters.read() == {Series(OPS, "", ("a",)): 1}


def test_without_redis_seconds_are_lost_and_nothing_else() -> None:
    with redis_servers.running() as url:
        state, counters = State(url), Counters()
        flusher = CounterFlusher(counters, state.counters)
        counters.count(OPS, {"subnet_id": "a"})
    flusher.flush()
    assert counters.drain() == {}
    state.client.close()


def test_nothing_counted_is_nothing_sent(state: State) -> None:
    CounterFlusher(Counters(), state.counters).flush()
    assert not state.client.exists(state.keys.counters)
