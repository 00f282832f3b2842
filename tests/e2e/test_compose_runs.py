"""The services of the Compose file make a whole system: the same commands, from the wheel, without containers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import urllib3
from compose_under_test import Compose, running
from waiting import until

from eni_tasks.sandbox.ec2.admin import Ec2Admin

if TYPE_CHECKING:
    from pathlib import Path

NODES = 3
PASSWORD = "not a default"  # noqa: S105 - of this test


def test_the_services_make_a_whole_system(tmp_path: Path) -> None:
    with running(tmp_path, NODES=str(NODES), FLOWER_PASSWORD=PASSWORD, CHANGES_PER_SECOND="2") as compose:
        checked = [name for name in compose.running if "healthcheck" in compose.services[name]]
        for name in checked:
            compose.running[name].until(lambda name=name: compose.healthy(name), f"{name} is healthy")
        until(lambda: at_size(compose), "all pools are at size, and pods use them")
        doctor = compose.run("watcher", "eni-tasks", "doctor")
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr
        exported = get(compose, "9464", "/metrics")
        nodes = [line for line in exported.splitlines() if line.startswith("eni_tasks_ipam_nodes{")]
        assert [line for line in nodes if 'category="total"' in line and line.endswith(f" {NODES}.0")], nodes
        workers = json.loads(get(compose, "5555", "/workers?json=1", auth=f"admin:{PASSWORD}"))["data"]
        assert {row["hostname"].partition("-")[0] for row in workers} == {"ec2", "apiserver", "resync"}
        assert Ec2Admin(f"http://127.0.0.1:{compose.ports['4566']}").violations() == []
        del compose.running["definition"]  # it has ended long ago
        assert set(compose.down().values()) == {0}


def at_size(compose: Compose) -> Any:
    answer = compose.run("watcher", "eni-tasks", "status", "--json")
    return answer.returncode == 0 and len(json.loads(answer.stdout)["nodes"]) == NODES


def get(compose: Compose, port: str, path: str, auth: str = "") -> str:
    headers = urllib3.make_headers(basic_auth=auth) if auth else {}
    answer = urllib3.request("GET", f"http://127.0.0.1:{compose.ports[port]}{path}", headers=headers, timeout=10.0)
    assert answer.status == 200, answer.data
    return answer.data.decode()
