"""The table of metrics is sound by Prometheus' rules."""

from __future__ import annotations

import re

import pytest

from eni_tasks.observability.metrics import METRICS, Kind


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_names_labels_and_buckets_are_sound(metric):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert all(re.fullmatch(r"[a-z][a-z_]*", label) and label not in {"le", "quantile"} for label in metric.labels)
    assert len(set(metric.labels)) == len(metric.labels)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert not metric.name.endswith(("_sum", "_count", "_bucket"))
    assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.per_node == ("target_node" in metric.labels)
