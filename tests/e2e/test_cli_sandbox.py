"""`eni-tasks sandbox` as a newcomer runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).parent / "eni-tasks"), "sandbox"]

pytestmark = pytest.mark.timeout(240)


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
    assert "starting Redis" in answer.stderr


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_deadline_that_cannot_be_met_says_what_is_missing(form: tuple[str, ...]) -> None:
    answer = sandbox("--nodes", "40", "--until-ready", "--deadline", "6", "--latency-ms", "1500", *form)
    assert answer.returncode == 1
    if form:
        report = json.loads(answer.stdout)
        assert len(report["missing"]) + report["unknown"] == report["nodes"] - report["ready"] > 0
        assert all(view["reason"] for view in report["missing"])
    else:
        assert "node-0000" in answer.stderr or "of 40 pools at size" in answer.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_it_leaves_no_process_behind(number: signal.Signals, tmp_path: Path) -> None:
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen([*COMMAND, "--nodes", "3"], stdout=subprocess.DEVNULL, stderr=errors)
    try:
        wait_for(lambda: "3 of 3 pools at size" in (tmp_path / "errors").read_text(), process)
        children = children_of(process.pid)
        assert len(children) >= 7  # Redis, two APIs, three workers, the watcher (and Flower)
        process.send_signal(number)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 15
    while left := [pid for pid in children if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"{left} are still there"
        time.sleep(0.05)
    assert "Traceback" not in (tmp_path / "errors").read_text()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition: object, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while not condition():  # type: ignore[operator]
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.1)
