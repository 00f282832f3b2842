"""Cilium's metrics of its operator's triggers, derived from what is counted for our kinds of work.

Nothing is counted twice: the sums are those of `enqueued_total`, `task_run_seconds` and `task_wait_seconds`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from eni_tasks.model.work import WorkKind
from eni_tasks.observability.counters import Series

TRIGGER_OF_KIND = {
    WorkKind.MAINTAIN: "deficit_resolver",
    WorkKind.PUBLISH: "k8s_sync",
    WorkKind.FLEET: "resync",
}
TRIGGER_OF_TASK = {
    "eni.maintain_node": "deficit_resolver",
    "eni.publish_node": "k8s_sync",
    "eni.refresh_inventory": "resync",
    "eni.refresh_instances": "resync",
    "eni.collect_orphans": "resync",
}
_NO_RUN = "skipped"  # another worker held the claim


def of_triggers(sums: Mapping[Series, float]) -> dict[Series, float]:
    """Give the counters and histograms of the triggers.

    Args:
        sums: what all processes counted.

    Returns:
        Sums by series, as `sums` has them.
    """
    found: dict[Series, float] = defaultdict(float)
    for (name, part, labels), value in sums.items():
        match name, labels:
            case "enqueued_total", (kind, _) if kind in TRIGGER_OF_KIND:
                found[Series(f"ipam_{TRIGGER_OF_KIND[WorkKind(kind)]}_queued_total", part, ())] += value
            case "task_run_seconds", (task, outcome) if task in TRIGGER_OF_TASK and outcome != _NO_RUN:
                found[Series(f"ipam_{TRIGGER_OF_TASK[task]}_duration_seconds", part, ())] += value
            case "task_wait_seconds", (task,) if task in TRIGGER_OF_TASK:
                found[Series(f"ipam_{TRIGGER_OF_TASK[task]}_latency_seconds", part, ())] += value
    return dict(found)
