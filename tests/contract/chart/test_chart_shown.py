"""What shows things, started as the chart starts it, is well where its probes ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import urllib3
from chart import VALUE_SETS, container, environment, objects, workloads
from processes_under_test import running
from redis_servers import free_port
from redis_servers import running as redis_running

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("component", ["exporter", "flower"])
def test_it_is_well_where_its_probes_ask(component: str, tmp_path: Path) -> None:
    found = objects(VALUE_SETS["flower-for-all"])
    given = container(workloads(found)[component])
    (served,) = given["ports"]
    port = str(free_port())
    here = {str(served["containerPort"]): port, "0.0.0.0": "127.0.0.1"}  # noqa: S104 - what is replaced
    command, *options = [here.get(argument, argument) for argument in given["args"]]
    with redis_running() as url:
        variables = environment(found, component) | {"ENI_TASKS_REDIS_URL": url, "ENI_TASKS_PAGE_PORT": "0"}
        with (
            running(tmp_path / "log", f"workers.{command}", *options, **variables) as process,
            urllib3.PoolManager(retries=False, timeout=5.0) as http,
        ):
            for probe in ("startup", "liveness", "readiness"):
                asked = given[f"{probe}Probe"]["httpGet"]
                assert asked["port"] == served["name"]

                def well(path: str = asked["path"]) -> bool:
                    try:
                        return http.request("GET", f"http://127.0.0.1:{port}{path}").status == 200
                    except urllib3.exceptions.HTTPError:
                        return False

                process.until(well, f"{probe} probe")
