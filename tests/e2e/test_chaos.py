"""A short run of the chaos: real processes, killed and starved, between servers that fail in every way."""

from __future__ import annotations

import gc

import pytest
from chaos.report import Options
from chaos.running import run

SEED = 7  # any will do; `make chaos` takes a new one each time


# Connections to servers that were killed are closed when they are collected.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fleet_in_trouble_recovers() -> None:
    report = run(Options(SEED, seconds=6, nodes=8, deadline_seconds=240, lasting=False, pace=6), print)
    gc.collect()
    assert report.failures == [], "\n".join(report.lines())
    assert report.injected.total() > 20
