"""What a process counts: sums by label, buckets by their bounds, nothing lost between threads and drains."""

from __future__ import annotations

import threading

import pytest

from eni_tasks.observability.counters import Counters, Series
from eni_tasks.observability.metrics import METRICS

OPS, CALLS = "ipam_ip_allocation_ops", "ec2_api_duration_seconds"
CALL = {"operation": "A", "response_code": "OK"}


def test_sums_by_label_until_they_are_drained():
    meter = Counters()
    meter.count(OPS, {"subnet_id": "a"}, 5)
    meter.count(OPS, {"subnet_id": "b"}, 2)
    meter.count(OPS, {"subnet_id": "a"})
    assert meter.drain() == {Series(OPS, "", ("a",)): 6, Series(OPS, "", ("b",)): 2}
    assert meter.drain() == {}


def test_the_order_of_labels_is_the_metrics():
    meter = Counters()
    meter.observe(CALLS, {"response_code": "OK", "operation": "A"}, 1)
    assert {part.labels for part in meter.drain()} == {("A", "OK")}


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0, "0.01"), (0.01, "0.01"), (0.011, "0.025"), (1, "1.0"), (25, "25.0"), (25.1, "+Inf")],
    ids=str,
)
def test_a_bucket_includes_its_upper_bound(seconds, bucket):
    meter = Counters()
    meter.observe(CALLS, CALL, seconds)
    assert meter.drain() == {Series(CALLS, bucket, ("A", "OK")): 1, Series(CALLS, "sum", ("A", "OK")): seconds}


@pytest.mark.parametrize(
    ("name", "labels"),
    [("no_such_metric", {}), (OPS, {}), (OPS, {"subnet": "a"})],
    ids=["unknown", "label missing", "label misspelt"],
)
def test_a_mistake_of_the_caller_is_told(name, labels):
    with pytest.raises(KeyError):
        Counters().count(name, labels)


def test_threads_lose_nothing():
    meter, drained = Counters(), []

    def work():
        for _ in range(2000):
            meter.count(OPS, {"subnet_id": "a"})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        drained.append(meter.drain())
    drained.append(meter.drain())
    assert sum(value for sums in drained for value in sums.values()) == 8000


def test_every_metric_that_processes_make_can_be_entered():
    meter = Counters()
    for metric in METRICS.values():
        labels = dict.fromkeys(metric.labels, "x")
        (meter.observe if metric.buckets else meter.count)(metric.name, labels, 1)
    assert {part.name for part in meter.drain()} == set(METRICS)
