"""What the processes of a running system say: JSON line by line, and nothing about nodes that are well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from waiting import until
from whole import QUICK, System

from eni_tasks.sandbox.running import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

WORKERS = ("ec2", "apiserver", "resync")
OURS = (*WORKERS, "watcher", "flower")
NODES = 3

pytestmark = pytest.mark.timeout(240)


def lines(log: Path) -> list[dict[str, Any]]:
    """Each line by itself, outputs together: a container's log has no others."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_every_line_is_json_and_an_idle_fleet_is_silent() -> None:
    settings = {
        **QUICK,
        "ENI_TASKS_LOG_FORMAT": "json",
        "ENI_TASKS_LOG_LEVEL": "debug",
        "ENI_TASKS_RESYNC_SECONDS": "2",
    }
    with Sandbox(settings=settings) as sandbox:
        system = System(sandbox)
        try:
            system.fleet.add(NODES)
            until(system.quiet, "all pools at size")
            until(system.flower_is_up, "Flower knows the workers")
            logs = {name: sandbox.folder / f"{name}.log" for name in OURS}
            filled = {name: lines(log) for name, log in logs.items()}

            # Two full reads, begun after all was quiet.
            reads = system.calls()["DescribeSubnets"]
            until(lambda: system.calls()["DescribeSubnets"] >= reads + 3, "two more resyncs")
            idle = [line for name, log in logs.items() for line in lines(log)[len(filled[name]) :]]
            assert [line for line in idle if line["level"] != "debug"] == []

            for name in WORKERS:
                sandbox.children.running[name].terminate()
                sandbox.children.running[name].wait(30)
            ended = {name: lines(logs[name]) for name in WORKERS}
            secret = sandbox.environment["AWS_SECRET_ACCESS_KEY"]
            assert [name for name, log in logs.items() if secret in log.read_text()] == []
        finally:
            system.close()

    done = [line for line in filled["ec2"] if line["event"] == "task_done"]
    assert {line["node"] for line in done} == set(system.fleet.names)
    assert all(line["task"] == "eni.maintain_node" and line["task_id"] and line["did"] for line in done)
    assert {line["task"] for line in filled["apiserver"] if line["event"] == "task_done"} == {"eni.publish_node"}
    for name in WORKERS:
        (stopping,) = (line for line in ended[name] if line["event"] == "worker_stopping")
        assert (stopping["signal"], stopping["how"]) == ("SIGTERM", "warm")
    assert {line["level"] for part in (filled, ended) for said in part.values() for line in said} <= {
        "debug",
        "info",
        "warning",  # Celery's, if the tests run as root
    }
