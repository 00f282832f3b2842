"""The table of metrics: sound by Prometheus' rules, and docs/metrics.md says the same as the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eni_tasks.observability.metrics import METRICS, PREFIX, Kind

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(rf"\| `({PREFIX}\w+)` \|.*")


def rows() -> dict[str, str]:
    return {match[1]: match[0] for match in map(ROW.fullmatch, DOCUMENT.read_text().splitlines()) if match}


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_the_document_tells_each_metric(metric):
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    row = f"| `{PREFIX}{metric.name}` | {metric.kind} | {labels + ' ' if labels else ''}| {metric.help} |"
    assert rows().get(PREFIX + metric.name) == row


def test_the_document_names_no_metric_that_is_gone():
    assert set(rows()) == {PREFIX + name for name in METRICS}


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
