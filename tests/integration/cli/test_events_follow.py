"""`events --follow` in a process of its own: what comes is shown as it comes, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commands import Commands
    from pumped import System


# A shell starts what it runs in the background with SIGINT ignored, and children inherit that.
HEARS_CTRL_C: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}


@pytest.fixture
def follow(cli: Commands) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts following; `cli` has set the environment."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).parent / "eni-tasks"), "events", "--follow", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **HEARS_CTRL_C)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_what_was_and_what_comes_until_ctrl_c(
    system: System, follow: Callable[..., subprocess.Popen[str]], form: tuple[str, ...]
) -> None:
    events = system.services.state.events
    events.append("First", {"node": "node"})
    process = follow("--node", "node", *form)
    assert process.stdout is not None
    first = process.stdout.readline()
    events.append("Hidden", {"node": "other"})
    events.append("Second", {"node": "node", "count": 2})
    second = process.stdout.readline()
    if form:
        assert [json.loads(line)["what"] for line in (first, second)] == ["First", "Second"]
    else:
        assert first.split("\t")[1:] == ["First", "node", "\n"]
        assert second.split("\t")[1:] == ["Second", "node", "count=2\n"]
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=20)
    assert (process.returncode, rest, errors) == (0, "", "")


def test_a_reader_that_left_ends_it(system: System, follow: Callable[..., subprocess.Popen[str]]) -> None:
    system.services.state.events.append("Seen", {})
    process = follow("--limit", "1")
    assert process.stdout is not None
    assert process.stderr is not None
    assert "Seen" in process.stdout.readline()
    process.stdout.close()
    system.services.state.events.append("Unseen", {})
    process.wait(timeout=20)
    assert "Traceback" not in process.stderr.read()
