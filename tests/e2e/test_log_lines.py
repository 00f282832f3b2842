"""What the processes of a running system say: JSON line by line, and nothing about nodes that are well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from waiting import until
from whole import System, running

if TYPE_CHECKING:
    from pathlib import Path

WORKERS = ("ec2", "apiserver", "resync")
OURS = (*WORKERS, "watcher", "flower")
NODES = 3
STARTING_PERIODS = 20  # a process that still has something to say about its start gets so long


def lines(log: Path) -> list[dict[str, Any]]:
    """Each line by itself, outputs together: a container's log has no others."""
    return [json.loads(line) for line in log.read_text().splitlines()]


class Logs:
    """The logs of a system's processes."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._files = {name: system.sandbox.folder / f"{name}.log" for name in OURS}

    def read(self) -> dict[str, list[dict[str, Any]]]:
        return {name: lines(file) for name, file in self._files.items()}

    def above_debug(self) -> dict[str, list[dict[str, Any]]]:
        return {name: [line for line in said if line["level"] != "debug"] for name, said in self.read().items()}

    def after_periods(self, count: int) -> dict[str, list[dict[str, Any]]]:
        """What is above debug when so many more periods have begun."""
        begun = self._system.calls()["DescribeSubnets"] + count
        until(lambda: self._system.calls()["DescribeSubnets"] >= begun, f"{count} more periodic reads")
        return self.above_debug()


def test_every_line_is_json_and_an_idle_fleet_is_silent() -> None:
    settings = {
        "ENI_TASKS_LOG_FORMAT": "json",
        "ENI_TASKS_LOG_LEVEL": "debug",
        "ENI_TASKS_RESYNC_SECONDS": "2",
    }
    with running(settings=settings) as system:
        system.fleet.add(NODES)
        until(system.quiet, "all pools at size")
        until(system.flower_is_up, "Flower knows the workers")
        logs = Logs(system)
        for _ in range(STARTING_PERIODS):
            filled, idle = logs.above_debug(), logs.after_periods(1)
            if idle == filled:
                break

        # With the one before, two full reads that began after all was quiet.
        assert logs.after_periods(2) == filled

        filled = logs.read()
        for name in WORKERS:
            system.sandbox.children.running[name].terminate()
            system.sandbox.children.running[name].wait(30)
        ended = logs.read()
        secret = system.sandbox.environment["AWS_SECRET_ACCESS_KEY"]
        assert [name for name in OURS if secret in (system.sandbox.folder / f"{name}.log").read_text()] == []

    done = [line for line in filled["ec2"] if line["event"] == "task_done"]
    assert {line["node"] for line in done} == set(system.fleet.names)
    assert all(line["task"] == "eni.maintain_node" and line["task_id"] and line["did"] for line in done)
    assert {line["task"] for line in filled["apiserver"] if line["event"] == "task_done"} == {"eni.publish_node"}
    for name in WORKERS:
        (stopping,) = (line for line in ended[name] if line["event"] == "worker_stopping")
        assert (stopping["signal"], stopping["how"]) == ("SIGTERM", "warm")
    assert {line["level"] for said in ended.values() for line in said} <= {
        "debug",
        "info",
        "warning",  # Celery's, if the tests run as root
    }
