"""The Compose file: its official schema, the rules it keeps, and that what it names exists.

That its commands run, and together make a system, is shown by `tests/e2e/test_compose_runs.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from eni_tasks.settings import load

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "compose"
FILE = FOLDER / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
ONCE = {"definition"}  # ends by itself
NO_ROOM_FOR_CHECKS = {"fleet"}  # nothing waits for it, and it ends when it can't go on
WRITABLE = {"kubernetes"}


def services(names: Any = SERVICES) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", sorted(names))


def test_it_fits_the_official_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@services()
def test_a_service_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only", False) is (name not in WRITABLE)
    assert not {"privileged", "cap_add", "network_mode", "pid", "ipc", "devices"} & service.keys()
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@services()
def test_a_service_mounts_no_path_of_the_host(name: str) -> None:
    sources = {volume.partition(":")[0] for volume in SERVICES[name].get("volumes", [])}
    assert sources <= COMPOSE["volumes"].keys()


@services()
def test_a_service_comes_back_and_says_how_it_is(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == ("no" if name in ONCE else "unless-stopped")
    assert ("healthcheck" in service) is (name not in ONCE | NO_ROOM_FOR_CHECKS)
    assert "mem_limit" in service
    assert service["logging"] == {"driver": "local"}


@services()
def test_a_service_waits_for_what_can_be_waited_for(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        if how["condition"] == "service_completed_successfully":
            assert other in ONCE
        else:
            assert how["condition"] == "service_healthy"
            assert "healthcheck" in SERVICES[other]


@services(set(SERVICES) - set(OURS))
def test_an_image_of_others_is_pinned(name: str) -> None:
    tag = SERVICES[name]["image"].partition(":")[2]
    assert re.match(r"v?\d+\.\d+\.\d+", tag)


def test_one_image_serves_all_processes() -> None:
    assert {SERVICES[name]["image"] for name in OURS} == {"eni-tasks:${VERSION:-dev}"}
    assert all(SERVICES[name]["tmpfs"] == ["/tmp"] for name in OURS)  # noqa: S108 - of the container


@services(OURS)
def test_the_settings_of_a_service_can_be_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        monkeypatch.setenv(variable, value)
    load()


def test_chart_and_compose_bring_the_same_redis() -> None:
    image = yaml.safe_load((ROOT / "helm/eni-tasks/values.yaml").read_text())["redis"]["bundled"]["image"]
    assert SERVICES["redis"]["image"] == f"{image['repository']}:{image['tag']}"


def test_configuration_files_are_there_and_used() -> None:
    files = {name: FOLDER / entry["file"] for name, entry in COMPOSE["configs"].items()}
    assert [name for name, path in files.items() if not path.is_file()] == []
    used = {config["source"] for service in SERVICES.values() for config in service.get("configs", [])}
    assert used == files.keys()


def test_a_host_that_is_named_is_a_service() -> None:
    texts = [path.read_text() for path in FOLDER.rglob("*.yaml")]
    named = {host for text in texts for host in re.findall(r"(?:://|targets: \[\")([\w.]+):\d", text)} - {"127.0.0.1"}
    assert named == {"redis", "ec2", "kubernetes", "exporter", "prometheus"}
    assert named <= SERVICES.keys()


def test_what_may_be_chosen_is_in_the_example() -> None:
    chosen = set(re.findall(r"\$\{([A-Z_]+)", FILE.read_text()))
    offered = set(re.findall(r"^([A-Z_]+)=", (FOLDER / "example.env").read_text(), re.MULTILINE))
    assert chosen == offered


@pytest.mark.parametrize("variable", ["FLOWER_PASSWORD", "GRAFANA_PASSWORD"])
def test_there_is_no_default_for_a_password(variable: str) -> None:
    assert FILE.read_text().count(f"${{{variable}") == FILE.read_text().count(f"${{{variable}:?") == 1
