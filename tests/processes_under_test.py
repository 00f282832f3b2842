"""One process of ours, started as people start it, with its output in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[1]


class Process:
    """A running `python -m …`, and what it has said."""

    def __init__(self, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.popen, self.pid, self._log = popen, popen.pid, log

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def cpu_seconds(self) -> float:
        """The processor time that it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait for a condition while the process lives; returns what it gave."""

        def found_while_it_lives() -> Any:
            found = condition()
            assert found or self.popen.poll() is None, f"ended with {self.popen.returncode}"
            return found

        try:
            return until(found_while_it_lives, what)
        except AssertionError as error:
            error.add_note(self.said)
            raise

    def end(self) -> int:
        """SIGTERM; returns the exit code."""
        self.popen.terminate()
        return self.popen.wait(30)


@contextmanager
def running(log: Path, module: str, *arguments: str, cwd: Path = ROOT, **environment: str) -> Iterator[Process]:
    """Run `python -m module arguments`, both its outputs in `log`."""
    with log.open("wb") as output:
        popen = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=cwd,
            env=clean(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_as_in_a_foreground_shell,  # noqa: PLW1509 - one system call
        )
    try:
        yield Process(popen, log)
    finally:
        popen.kill()
        popen.wait()


def _as_in_a_foreground_shell() -> None:
    """A shell starts what runs in its background with SIGINT ignored, and every process of a test run inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """This environment without settings of ours, and with these."""
    ours = ("ENI_TASKS_", "AWS_", "FLOWER_", "CELERY_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {"PYTHONPATH": str(ROOT), **inherited, "AWS_EC2_METADATA_DISABLED": "true", **environment}
