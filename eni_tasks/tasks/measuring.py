"""How long messages wait and runs take, for every task alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from eni_tasks.observability.counters import Counters
from eni_tasks.tasks.messages import REFRESH_INVENTORY

Report = dict[str, Any]


def measured(counters: Counters, task: str, sent_at: object, run: Callable[[], Report]) -> Report:
    """Run a task, and enter how long it waited and took.

    Args:
        counters: where to.
        task: its name.
        sent_at: what the message says of its sending (the sender's clock); anything but a number means
            that nobody knows, as of messages that people send by other means.
        run: the task's body; its report says "skipped" or "failed" if it was not served.

    Returns:
        The report.
    """
    if isinstance(sent_at, int | float):
        counters.observe("task_wait_seconds", {"task": task}, max(0.0, time.time() - sent_at))
    started, outcome = time.monotonic(), "error"
    try:
        report = run()
        outcome = next((word for word in ("skipped", "failed") if word in report), "ok")
    finally:
        seconds = time.monotonic() - started
        counters.observe("task_run_seconds", {"task": task, "outcome": outcome}, seconds)
    if task == REFRESH_INVENTORY and outcome != "skipped":
        status = "success" if outcome == "ok" else "failed"
        counters.observe("ipam_background_sync_duration_seconds", {"status": status}, seconds)
        counters.count("ipam_resync_total", value=float(outcome == "ok"))
    return report
