"""Every run is measured by its outcome, and how long its message waited if that is known."""

from __future__ import annotations

import time

import pytest

from eni_tasks.observability.counters import Counters
from eni_tasks.tasks.base import measured
from eni_tasks.tasks.messages import MAINTAIN, REFRESH_INVENTORY


def counted(counters: Counters) -> dict[tuple[str, ...], float]:
    """How often each series was observed or counted."""
    counts: dict[tuple[str, ...], float] = {}
    for part, value in counters.drain().items():
        if part.part != "sum":
            key = (part.name, *part.labels)
            counts[key] = counts.get(key, 0) + value
    return counts


@pytest.mark.parametrize(
    ("report", "outcome"),
    [({"actions": 1}, "ok"), ({"skipped": "held"}, "skipped"), ({"failed": "no"}, "failed")],
    ids=["ok", "skipped", "failed"],
)
def test_the_outcome_is_the_reports(report, outcome):
    counters = Counters()
    assert measured(counters, MAINTAIN, None, lambda: report) == report
    assert counted(counters) == {("task_run_seconds", MAINTAIN, outcome): 1}


def test_a_run_that_raises_is_measured_too():
    counters = Counters()
    with pytest.raises(ZeroDivisionError):
        measured(counters, MAINTAIN, None, lambda: {"x": 1 // 0})
    assert counted(counters) == {("task_run_seconds", MAINTAIN, "error"): 1}


@pytest.mark.parametrize(
    ("sent_ago", "waited"), [(7, 7), (0, 0), (-3600, 0)], ids=["a while ago", "now", "a clock that is ahead"]
)
def test_the_wait_of_a_message(sent_ago, waited):
    counters = Counters()
    measured(counters, MAINTAIN, time.time() - sent_ago, dict)
    waits = {part.part: value for part, value in counters.drain().items() if part.name == "task_wait_seconds"}
    assert waits["sum"] == pytest.approx(waited, abs=1)


@pytest.mark.parametrize("sent_at", [None, "yesterday", {}], ids=["by hand", "a word", "nonsense"])
def test_a_wait_that_nobody_knows_is_not_made_up(sent_at):
    counters = Counters()
    measured(counters, MAINTAIN, sent_at, dict)
    assert {part.name for part in counters.drain()} == {"task_run_seconds"}


@pytest.mark.parametrize(
    ("report", "counts"),
    [
        ({"instances": 3}, {("ipam_background_sync_duration_seconds", "success"): 1, ("ipam_resync_total",): 1}),
        ({"failed": "no"}, {("ipam_background_sync_duration_seconds", "failed"): 1, ("ipam_resync_total",): 0}),
        ({"skipped": "held"}, {}),
    ],
    ids=["read", "failed", "skipped"],
)
def test_reads_of_all_instances_are_told_as_cilium_tells_them(report, counts):
    counters = Counters()
    measured(counters, REFRESH_INVENTORY, None, lambda: report)
    assert {key: value for key, value in counted(counters).items() if key[0] != "task_run_seconds"} == counts
