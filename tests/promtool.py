"""Prometheus' own evaluation of the chart's alerts: Debian's package `prometheus` has promtool."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart import CHART

ALERTS = CHART / "files" / "alerts.yaml"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
}
STEP_SECONDS = 15  # between two scrapes, and between two evaluations


def check_rules(folder: Path, *tests: dict[str, Any]) -> None:
    """Run `promtool test rules` on the chart's alerts.

    Args:
        folder: for the file that promtool reads.
        tests: as in Prometheus' manual, "Unit testing for rules"; their interval is STEP_SECONDS.
    """
    program = shutil.which("promtool")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs promtool: apt-get install prometheus")
    step = f"{STEP_SECONDS}s"
    file = folder / "test.yaml"
    whole = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": step,
        "tests": [{"interval": step, **test} for test in tests],
    }
    file.write_text(yaml.safe_dump(whole))
    ran = subprocess.run([program, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
