"""What a process counts: sums by label, buckets by their bounds, nothing lost between threads and drains."""

from __future__ import annotations

import threading

import pytest

from eni_tasks.observability.counters import Counters, Series
from eni_tasks.observability.metrics import METRICS

OPS, CALLS = "ipam_ip_allocation_ops", "ec2_api_duration_seconds"
CALL = {"operation": "A", "response_code": "OK"}


def test_sums_by_label_until_they_are_drained():
    counters = Counters()
    counters.count(OPS, {"subnet_id": "a"}, 5)
    counters.count(OPS, {"subnet_id": "b"}, 2)
    counters.count(OPS, {"subnet_id": "a"})
    assert counters.drain() == {Series(OPS, "", ("a",)): 6, Series(OPS, "", ("b",)): 2}
    assert counters.drain() == {}


def test_the_order_of_labels_is_the_metrics():
    counters = Counters()
    counters.observe(CALLS, {"response_code": "OK", "operation": "A"}, 1)
    assert {part.labels for part in counters.drain()} == {("A", "OK")}


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0, "0.01"), (0.01, "0.01"), (0.011, "0.025"), (1, "1.0"), (25, "25.0"), (25.1, "+Inf")],
    ids=str,
)
def test_a_bucket_includes_its_upper_bound(seconds, bucket):
    counters = Counters()
    counters.observe(CALLS, CALL, seconds)
    assert counters.drain() == {Series(CALLS, bucket, ("A", "OK")): 1, Series(CALLS, "sum", ("A", "OK")): seconds}


@pytest.mark.parametrize(
    ("name", "labels"),
    [("no_such_metric", {}), (OPS, {}), (OPS, {"subnet": "a"})],
    ids=["unknown", "label missing", "label misspelt"],
)
def test_a_mistake_of_the_caller_is_told(name, labels):
    with pytest.raises(KeyError):
        Counters().count(name, labels)


def test_threads_lose_nothing():
    counters, drained = Counters(), []

    def work():
        for _ in range(2000):
            counters.count(OPS, {"subnet_id": "a"})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        drained.append(counters.drain())
    drained.append(counters.drain())
    assert sum(value for sums in drained for value in sums.values()) == 8000


def test_every_metric_that_processes_make_can_be_entered():
    counters = Counters()
    for metric in METRICS.values():
        labels = dict.fromkeys(metric.labels, "x")
        (counters.observe if metric.buckets else counters.count)(metric.name, labels, 1)
    assert {part.name for part in counters.drain()} == set(METRICS)
