"""The files that probes look at."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from eni_tasks.errors import InvalidInput
from eni_tasks.observability.probes import Probes

if TYPE_CHECKING:
    from pathlib import Path


def age_seconds(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def test_a_process_starts_alive_and_not_ready_whatever_an_earlier_one_left(tmp_path: Path) -> None:
    (tmp_path / "ready").touch()
    (tmp_path / "alive").touch()
    os.utime(tmp_path / "alive", (0, 0))
    Probes(str(tmp_path))
    assert not (tmp_path / "ready").exists()
    assert age_seconds(tmp_path / "alive") < 60


def test_it_may_be_away_for_a_while(tmp_path: Path) -> None:
    probes = Probes(str(tmp_path))
    probes.alive(3600)
    assert -3600 <= age_seconds(tmp_path / "alive") < -3500
    probes.alive()
    assert abs(age_seconds(tmp_path / "alive")) < 60


def test_a_turn_that_fails_is_alive_and_does_not_serve(tmp_path: Path) -> None:
    probes = Probes(str(tmp_path))
    for fails in (False, True, False):
        os.utime(tmp_path / "alive", (0, 0))
        try:
            with probes.turn():
                assert not fails
        except AssertionError:
            pass
        assert (tmp_path / "ready").exists() is not fails
        assert age_seconds(tmp_path / "alive") < 60


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Probes("").turn():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"ENI_TASKS_PROBE_DIR.*missing"):
        Probes(str(tmp_path / "missing"))
