"""The command line as its users' shells, pipes and files see it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from processes_under_test import clean
from typer.testing import CliRunner

from eni_tasks.cli.commands import main

if TYPE_CHECKING:
    from commands import Commands
    from pumped import System

FULL = Path("/dev/full")


def run(command: str, redirected: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell, as it stands there."""
    line = f"exec {sys.executable} -m eni_tasks.cli {command} {redirected}"
    variables = clean(environment)
    return subprocess.run(["sh", "-c", line], env=variables, capture_output=True, text=True, timeout=60, check=False)


def test_the_version_is_told() -> None:
    answer = run("--version")
    assert (answer.returncode, answer.stdout) == (0, f"eni-tasks {version('eni-tasks')}\n")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has it")
@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", ["settings", "settings --json", "--help"])
def test_an_answer_that_cannot_be_written_is_a_sentence(command: str, buffered: str) -> None:
    answer = run(command, f"> {FULL}", PYTHONUNBUFFERED=buffered)
    assert (answer.returncode, answer.stderr) == (1, "The answer can't be written: No space left on device.\n")


def test_without_an_output_the_exit_code_still_tells() -> None:
    assert run("settings", ">&- 2>&-").returncode == 0
    assert run("settings", ">&- 2>&-", ENI_TASKS_CLUSTER="a b").returncode == 2


@pytest.mark.parametrize(
    "command",
    ["worker --queue apiserver", "worker --queue ec2 --queue apiserver", "watcher"],
)
def test_a_kubeconfig_that_cannot_be_used_ends_a_process(command: str) -> None:
    answer = run(command, KUBECONFIG="/nowhere", ENI_TASKS_REDIS_URL="redis://127.0.0.1:1/0")
    assert answer.returncode == 2
    assert answer.stderr.startswith("The Kubernetes API can't be reached: ")
    assert answer.stderr.count("\n") == 1


def test_logs_in_a_file_have_no_colours(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = "flower --no-auth --address foo.invalid --port 0"
    run(command, f"2> {log}", ENI_TASKS_LOG_FORMAT="console")
    assert "flower_without_password" in log.read_text()
    assert "\x1b" not in log.read_text()


def test_a_sandbox_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    server = tmp_path / "bin" / "redis-server"
    server.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 1\n")
    server.chmod(0o755)
    folder = tmp_path / "tmp"
    folder.mkdir()
    answer = run("sandbox", PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin", TMPDIR=str(folder))
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == "redis did not start: no such option"
    assert list(folder.iterdir()) == []


# -- completion ------------------------------------------------------------------------------------


def completed(*words: str) -> list[str]:
    """What bash is offered for the last word."""
    variables = {
        "_ENI_TASKS_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("eni-tasks", *words)),
        "COMP_CWORD": str(len(words)),
    }
    answer = CliRunner().invoke(main, env=variables, prog_name="eni-tasks")
    assert answer.exit_code == 0
    return answer.stdout.split()


def test_the_shell_is_offered_the_names_of_nodes(system: System, cli: Commands) -> None:
    assert cli  # has set the environment
    for name in ("node-1", "node-2", "other"):
        system.add_node(name)
    system.settle()
    for command in ("status", "plan", "maintain", "publish", "unlock", "events --node", "resync --instance"):
        assert completed(*command.split(), "node-") == ["node-1", "node-2"], command


def test_the_shell_is_offered_queues_and_passes() -> None:
    assert completed("worker", "--queue", "e") == ["ec2"]
    assert completed("unlock", "--pass", "in") == ["inventory", "instances"]


def test_without_redis_the_shell_is_offered_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", "redis://127.0.0.1:1/0")
    assert completed("plan", "node-") == []
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", "nonsense")
    assert completed("plan", "node-") == []
