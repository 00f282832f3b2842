"""Child processes of the sandbox: suspended with all that they started, resumed, and ended in any state."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eni_tasks.errors import PermanentError
from eni_tasks.sandbox.processes import Children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A process with a child of its own; both write what time it is, ten milliseconds apart.
TICKING = """
import os, pathlib, sys, time
name = "child" if os.fork() == 0 else "parent"
file = pathlib.Path(sys.argv[1], name)
parent = os.getppid()
while os.getppid() == parent:
    file.with_suffix(".new").write_text(f"{os.getpid()} {time.monotonic()}")
    file.with_suffix(".new").rename(file)
    time.sleep(0.01)
"""


@contextmanager
def ticking(folder: Path) -> Iterator[Children]:
    (folder / "ticking.py").write_text(TICKING)
    children = Children(folder)
    children.start("clock", "ticking", [str(folder)], {**os.environ, "PYTHONPATH": str(folder)})
    try:
        until(lambda: (folder / "parent").exists() and (folder / "child").exists(), "both run")
        yield children
    finally:
        children.stop()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def times(folder: Path) -> list[float]:
    return [float((folder / name).read_text().split()[1]) for name in ("parent", "child")]


def later(folder: Path, before: list[float]) -> bool:
    return all(now > then for now, then in zip(times(folder), before, strict=True))


def pid(folder: Path, name: str) -> int:
    return int((folder / name).read_text().split()[0])


def state(process: int) -> str:
    """The letter that the kernel has for it, such as T for stopped; "" if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_suspended_process_stands_still_and_goes_on(tmp_path: Path) -> None:
    with ticking(tmp_path) as children:
        for _ in range(2):
            children.suspend("clock")
            until(lambda: state(pid(tmp_path, "child")) == "T", "its own child stands still")
            assert state(pid(tmp_path, "parent")) == "T"
            stopped_at = times(tmp_path)
            assert children.dead() == []
            children.resume("clock")
            until(partial(later, tmp_path, stopped_at), "they go on")
        children.resume("clock")  # which is running: nothing happens
        assert children.dead() == []


@pytest.mark.parametrize("end", ["stop", "again"])
def test_a_suspended_process_ends_with_its_children(tmp_path: Path, end: str) -> None:
    with ticking(tmp_path) as children:
        both = [pid(tmp_path, name) for name in ("parent", "child")]
        children.suspend("clock")
        started = time.monotonic()
        children.stop() if end == "stop" else children.again("clock")
        assert time.monotonic() - started < 5  # the grace period is longer
        until(lambda: not any(map(state, both)), "none is left behind")


def test_a_process_that_has_ended_cannot_be_suspended(tmp_path: Path) -> None:
    with ticking(tmp_path) as children:
        children.running["clock"].send_signal(signal.SIGKILL)
        until(lambda: children.dead() == ["clock"], "it is dead")
        with pytest.raises(PermanentError, match="clock has ended"):
            children.suspend("clock")


def test_a_process_that_is_killed_while_suspended(tmp_path: Path) -> None:
    with ticking(tmp_path) as children:
        child = pid(tmp_path, "child")
        children.suspend("clock")
        children.running["clock"].send_signal(signal.SIGKILL)
        until(lambda: children.dead() == ["clock"], "it is dead")
        assert state(child) == "T"
        children.resume("clock")
        until(lambda: not state(child), "its own child goes on, and ends as it has no parent")
