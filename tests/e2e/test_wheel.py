"""The wheel, in an environment of its own and far from this checkout: every entry point starts from it."""

from __future__ import annotations

import json
import signal
import subprocess
import tarfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
import redis_servers
from installed import ROOT, Installed
from processes_under_test import Process, clean

from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.kube.server import KubeServer

if TYPE_CHECKING:
    from collections.abc import Iterator


# module -> its arguments, and what it says when it is up
WORKERS = {
    "apiserver": ([], " ready."),
    "ec2": ([], " ready."),
    "exporter": (["--port", "0"], "exporter_started"),
    "flower": (["--port", "0", "--no-auth"], "Visit me at"),
    "resync": ([], " ready."),
    "watcher": ([], "objects_listed"),
}
NO_PROCESSES = {"__init__", "app"}

# Each command's help, in one process.
HELPS = """
import contextlib, io, json, typer
import eni_tasks
from eni_tasks.cli.commands import main

def paths(command, path=()):
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from paths(child, (*path, name))

said = {}
for path in paths(typer.main.get_command(main)):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            main([*path, "--help"])
        except SystemExit as ending:
            said[" ".join(path)] = [ending.code, output.getvalue()]
print(json.dumps({"from": eni_tasks.__file__, "said": said}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("servers")
    with redis_servers.running() as redis_url, KubeServer() as kube, Ec2Server() as ec2:
        variables = {
            "ENI_TASKS_REDIS_URL": redis_url,
            "KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", kube.url)),
            "AWS_ENDPOINT_URL": ec2.url,
            "AWS_REGION": "eu-west-1",
            "ENI_TASKS_PAGE_PORT": "0",
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
        }
        everything = clean(variables)
        del everything["PYTHONPATH"]
        yield everything


def test_the_locked_packages_are_all_that_it_needs(installed: Installed) -> None:
    installed.pip("check")


def test_it_holds_every_file_of_the_packages(installed: Installed) -> None:
    files = {
        str(path.relative_to(ROOT))
        for package in ("eni_tasks", "workers")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert any(name.endswith(".lua") for name in files)
    with ZipFile(installed.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == files
    with tarfile.open(installed.sdist) as sdist:
        source = {name.partition("/")[2] for name in sdist.getnames()}
    assert files | {"pyproject.toml", "README.md", "LICENSE", "requirements.lock"} <= source


def test_every_command_tells_its_use(installed: Installed, environment: dict[str, str], tmp_path: Path) -> None:
    answer = subprocess.run(
        [installed.python, "-c", HELPS],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    answered = json.loads(answer.stdout)
    assert Path(answered["from"]).is_relative_to(installed.site)
    assert {"", "worker", "watcher", "flower", "exporter", "status", "sandbox"} <= answered["said"].keys()
    assert {name: code for name, (code, _) in answered["said"].items() if code != 0} == {}
    assert [name for name, (_, text) in answered["said"].items() if "Usage:" not in text] == []


def test_the_script_starts(installed: Installed, environment: dict[str, str], tmp_path: Path) -> None:
    command = [str(installed.bin / "eni-tasks"), "settings", "--json"]
    answer = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["ENI_TASKS_REDIS_URL"] == environment["ENI_TASKS_REDIS_URL"]


def test_every_process_is_in_the_table() -> None:
    assert {path.stem for path in (ROOT / "workers").glob("*.py")} - NO_PROCESSES == WORKERS.keys()


@contextmanager
def started(name: str, installed: Installed, environment: dict[str, str], folder: Path) -> Iterator[Process]:
    log = folder / f"{name}.log"
    command = [installed.python, "-m", f"workers.{name}", *WORKERS[name][0]]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT) as popen,
    ):
        try:
            yield Process(popen, log)
        finally:
            popen.kill()


def test_each_process_comes_up_and_ends_on_sigterm(
    installed: Installed, environment: dict[str, str], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(started(name, installed, environment, tmp_path)) for name in sorted(WORKERS)
        }
        for name, process in processes.items():
            process.until(lambda name=name, process=process: WORKERS[name][1] in process.said, f"{name} is up")
        # The kernel withholds from PID 1 every signal that it neither catches nor blocks, to wait for it.
        assert [name for name, process in processes.items() if not takes(process.pid, signal.SIGTERM)] == []
        for process in processes.values():
            process.popen.terminate()
        assert {name: process.popen.wait(30) for name, process in processes.items()} == dict.fromkeys(processes, 0)
    assert [name for name, process in processes.items() if "Traceback" in process.said] == []


def takes(pid: int, number: signal.Signals) -> bool:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return any(int(status[kind], 16) >> (number - 1) & 1 for kind in ("SigCgt", "SigBlk"))
