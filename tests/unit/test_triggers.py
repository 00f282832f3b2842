"""Cilium's metrics of its triggers, derived from ours."""

from __future__ import annotations

from eni_tasks.exporter.triggers import TRIGGER_OF_KIND, TRIGGER_OF_TASK, of_triggers
from eni_tasks.model.work import WorkKind
from eni_tasks.observability.counters import SUM, Series
from eni_tasks.observability.metrics import METRICS, TRIGGERS
from eni_tasks.tasks.registry import TASKS


def test_each_kind_of_work_is_a_trigger_and_each_automatic_task_serves_one():
    assert TRIGGER_OF_KIND.keys() == set(WorkKind)
    assert set(TRIGGER_OF_KIND.values()) == set(TRIGGER_OF_TASK.values()) == TRIGGERS.keys()
    assert set(TRIGGER_OF_TASK) <= TASKS.keys()


def test_what_is_merged_counts_as_triggered():
    sums = {
        Series("enqueued_total", "", ("maintain", "sent")): 3.0,
        Series("enqueued_total", "", ("maintain", "merged")): 4.0,
        Series("enqueued_total", "", ("publish", "sent")): 5.0,
        Series("enqueued_total", "", ("of a later version", "sent")): 9.0,
    }
    assert of_triggers(sums) == {
        Series("ipam_deficit_resolver_queued_total", "", ()): 7.0,
        Series("ipam_k8s_sync_queued_total", "", ()): 5.0,
    }


def test_runs_of_all_tasks_and_outcomes_are_one_histogram():
    sums = {
        Series("task_run_seconds", "0.5", ("eni.refresh_inventory", "ok")): 2.0,
        Series("task_run_seconds", "0.5", ("eni.refresh_instances", "failed")): 1.0,
        Series("task_run_seconds", SUM, ("eni.refresh_instances", "failed")): 0.4,
        Series("task_run_seconds", "0.5", ("eni.refresh_inventory", "skipped")): 8.0,
        Series("task_run_seconds", "0.5", ("eni.pause", "ok")): 8.0,
        Series("task_wait_seconds", "0.1", ("eni.publish_node",)): 6.0,
    }
    assert of_triggers(sums) == {
        Series("ipam_resync_duration_seconds", "0.5", ()): 3.0,
        Series("ipam_resync_duration_seconds", SUM, ()): 0.4,
        Series("ipam_k8s_sync_latency_seconds", "0.1", ()): 6.0,
    }


def test_the_histograms_have_the_buckets_of_what_they_are_derived_from():
    for trigger in TRIGGERS:
        assert METRICS[f"ipam_{trigger}_duration_seconds"].buckets == METRICS["task_run_seconds"].buckets
        assert METRICS[f"ipam_{trigger}_latency_seconds"].buckets == METRICS["task_wait_seconds"].buckets
