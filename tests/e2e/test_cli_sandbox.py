"""`eni-tasks sandbox` as a newcomer runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes_under_test import running
from waiting import until

COMMAND = [str(Path(sys.executable).parent / "eni-tasks"), "sandbox"]


@pytest.fixture(autouse=True)
def logs_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox that ends badly keeps its logs in the folder for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=200, check=False)


def test_a_few_nodes_until_they_are_ready() -> None:
    answer = sandbox("--nodes", "5", "--until-ready", "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert (report["nodes"], report["ready"], report["unknown"]) == (5, 5, 0)
    assert report["missing"] == report["violations"] == []
    assert report["ec2_calls"]["AssignPrivateIpAddresses"] == 5
    assert "Starting Redis" in answer.stderr


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_deadline_that_cannot_be_met_says_what_is_missing(form: tuple[str, ...]) -> None:
    answer = sandbox("--nodes", "40", "--until-ready", "--deadline", "2", "--latency-ms", "1500", *form)
    assert answer.returncode == 1
    if form:
        report = json.loads(answer.stdout)
        assert len(report["missing"]) + report["unknown"] == report["nodes"] - report["ready"] > 0
        assert all(view["reason"] for view in report["missing"])
    else:
        assert "node-0000" in answer.stderr or "of 40 pools at size" in answer.stderr


@pytest.mark.parametrize(
    ("number", "when"),
    [(signal.SIGINT, "3 of 3 pools at size"), (signal.SIGTERM, "Launching 3 nodes")],
    ids=["Ctrl-C-when-all-is-well", "SIGTERM-while-it-starts"],
)
def test_ending_it_leaves_no_process_behind(number: signal.Signals, when: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(log, "eni_tasks.cli", "sandbox", "--nodes", "3") as process:
        process.until(lambda: when in process.said, when)
        children = children_of(process.pid)
        assert len(children) >= 7  # Redis, two APIs, three workers, the watcher (and Flower)
        process.popen.send_signal(number)
        process.popen.wait(30)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), f"none of {children} is left")
    assert "Traceback" not in log.read_text()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
