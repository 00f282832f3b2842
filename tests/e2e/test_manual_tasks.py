"""For people: every task can be started by hand, with a report as its result; the doctor finds nothing wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import urllib3
from whole import System, running, until

from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = "node-0000"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running() as system:
        system.fleet.add(2)
        until(system.quiet, "all pools at size")
        until(system.flower_is_up, "Flower shows a worker per queue")
        yield system


def by_flower(system: System, task: str, **arguments: Any) -> str:
    """Start a task through Flower's API; returns its id."""
    url = f"{system.sandbox.flower_url}/api/task/async-apply/{task}"
    answer = urllib3.request("POST", url, body=json.dumps(arguments), retries=False, timeout=10)
    assert answer.status == 200, answer.data
    return str(json.loads(answer.data)["task-id"])


def by_celery(system: System, task: str, **arguments: Any) -> str:
    """Start a task with Celery's own command; returns its id."""
    options = [word for name, value in arguments.items() for word in (f"--{name}", json.dumps(value))]
    sent = system.celery("call", task, *options)
    assert sent.returncode == 0, sent.stderr
    return sent.stdout.split()[-1]


def outcome(system: System, uuid: str) -> dict[str, Any]:
    """What Flower shows of a task that has ended."""

    def ended() -> dict[str, Any] | None:
        task = system.tasks().get(uuid, {})
        return task if task.get("state") in ("SUCCESS", "FAILURE") else None

    found: dict[str, Any] = until(ended, "Flower shows the task's end")
    return found


@pytest.mark.parametrize(
    ("task", "args", "report"),
    [
        ("eni.maintain_node", [NODE], "'reason': 'at-size'"),
        ("eni.publish_node", [NODE], "'node': 'node-0000'"),
        ("eni.refresh_inventory", [], "'instances': 2"),
        ("eni.refresh_instances", [], "'instances':"),
        ("eni.resync_node", [NODE], "'believed': True"),
        ("eni.unlock_node", [NODE], "No worker holds node-0000"),
        ("eni.collect_orphans", [True], "'would_delete': []"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("eni.") else "",
)
def test_a_report_is_the_result(system: System, task: str, args: list[str], report: str) -> None:
    shown = outcome(system, by_flower(system, task, args=args))
    assert shown["state"] == "SUCCESS", shown
    assert report in shown["result"]


def test_a_pause_and_its_end(system: System) -> None:
    paused = outcome(system, by_flower(system, "eni.pause", args=["Ada", "a look"]))
    assert "paused by Ada: a look" in paused["result"]
    resumed = outcome(system, by_flower(system, "eni.resume"))
    assert "The pause by Ada (a look) is over" in resumed["result"]


def test_the_same_with_celery_and_named_arguments(system: System) -> None:
    shown = outcome(system, by_celery(system, "eni.resync_node", kwargs={"node": NODE}))
    assert "1 interfaces with 8 secondary addresses" in shown["result"]


WRONG = [
    ("eni.maintain_node", {"args": []}, "missing a required argument: 'node' (its arguments: node)"),
    ("eni.maintain_node", {"kwargs": {"nod": "x"}}, "missing a required argument: 'node'"),
    ("eni.publish_node", {"args": ["x y"]}, "node='x y' is not the name of a node"),
    ("eni.unlock_node", {"args": [7]}, "node=7 is not the name of a node"),
    ("eni.pause", {"args": ["Ada"]}, "missing a required argument: 'why' (its arguments: who, why)"),
    ("eni.pause", {"args": ["Ada", ""]}, "why='' says nothing"),
    ("eni.pause", {"args": ["Ada", "x", "y"]}, "too many positional arguments (its arguments: who, why)"),
    ("eni.collect_orphans", {"args": ["yes"]}, "dry_run='yes' is neither true nor false"),
    ("eni.resume", {"args": ["x"]}, "too many positional arguments (its arguments: none)"),
    ("eni.resync_node", {"args": ["nobody"]}, "node nobody: no CiliumNode of that name is known"),
]


def test_wrong_arguments_are_refused_by_name_and_do_nothing(system: System) -> None:
    system.reset()
    started = [(by_flower(system, task, **arguments), words) for task, arguments, words in WRONG]
    for uuid, words in started:
        shown = outcome(system, uuid)
        assert shown["state"] == "FAILURE", shown
        assert words in shown["exception"]
    assert system.services.state.limiter.paused() is None
    assert not any("Traceback" in (system.sandbox.folder / f"{queue}.log").read_text() for queue in QUEUES)


def test_the_doctor_finds_nothing_wrong(system: System) -> None:
    answer = system.cli("doctor", "--json")
    assert answer.returncode == 0, answer.stdout
    findings = json.loads(answer.stdout)["findings"]
    assert {finding["verdict"] for finding in findings} <= {"ok", "unknown"}
    assert {finding["what"] for finding in findings} >= {*QUEUES, "ticks", "reachable", "ec2:AssignPrivateIpAddresses"}
