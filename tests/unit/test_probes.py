"""The two files that probes look at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from eni_tasks.errors import InvalidInput
from eni_tasks.observability import probes as module
from eni_tasks.observability.probes import Probes

if TYPE_CHECKING:
    from pathlib import Path


def age(file: Path) -> None:
    """Make a file look old, as if it had not been touched for a long time."""
    os.utime(file, (1, 1))


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    probes = Probes("")
    probes.alive()
    probes.ready(yes=True)
    assert list(tmp_path.iterdir()) == []


def test_a_new_process_is_alive_and_not_ready_whatever_the_one_before_it_left(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    for name in ("alive", "ready"):
        (folder / name).touch()
        age(folder / name)
    Probes(str(folder))
    assert [file.name for file in folder.iterdir()] == ["alive"]
    assert (folder / "alive").stat().st_mtime > 1


def test_a_sign_of_life_makes_the_file_young_and_costs_one_touch_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes, alive, now = Probes(str(tmp_path)), tmp_path / "alive", [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    touched = []
    for seconds in (0.0, 0.5, 0.9, 1.1, 0.1):
        now[0] += seconds
        age(alive)
        probes.alive()
        touched.append(alive.stat().st_mtime > 1)
    assert touched == [True, False, True, True, False]


def test_ready_comes_and_goes(tmp_path: Path) -> None:
    probes, ready = Probes(str(tmp_path)), tmp_path / "ready"
    for yes in (False, True, True, False, False, True):
        probes.ready(yes=yes)
        assert ready.exists() == yes


def test_a_folder_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="ENI_TASKS_PROBE_DIR"):
        Probes(str(tmp_path / "file"))


def test_a_file_that_cannot_be_written_is_logged_and_stops_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "probes"
    probes = Probes(str(folder))
    (folder / "alive").unlink()
    folder.rmdir()
    with capture_logs() as logged:
        probes.alive()
        probes.ready(yes=True)
    assert [entry["event"] for entry in logged] == ["probe_not_written"] * 2
