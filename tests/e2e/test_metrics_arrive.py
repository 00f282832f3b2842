"""The exporter as a process of its own beside real workers: what they do arrives in Prometheus' form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import processes_under_test
import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families
from whole import running, until

if TYPE_CHECKING:
    from pathlib import Path

NODES = 3

pytestmark = pytest.mark.timeout(240)


def scraped(http: urllib3.PoolManager, url: str) -> dict[str, float]:
    """The samples without the bounds of histograms, named as Prometheus writes them, without the prefix."""
    found = {}
    for family in text_string_to_metric_families(http.request("GET", f"{url}/metrics").data.decode()):
        for sample in family.samples:
            labels = ",".join(sorted(value for name, value in sample.labels.items() if name != "le"))
            found[f"{sample.name.removeprefix('eni_tasks_')}{{{labels}}}"] = sample.value
    return found


def test_what_workers_do_arrives_at_prometheus(tmp_path: Path) -> None:
    with running(with_flower=False) as system:
        environment = {**system.sandbox.environment, "ENI_TASKS_LOG_FORMAT": "json"}
        ours = {name: value for name, value in environment.items() if name.startswith("ENI_TASKS_")}
        log = tmp_path / "exporter.log"
        with (
            processes_under_test.running(log, "workers.exporter", "--port", "0", **ours) as exporter,
            urllib3.PoolManager(timeout=10.0) as http,
        ):
            line = json.loads(exporter.until(lambda: exporter.said.partition("\n")[0], "it says where it listens"))
            url = f"http://127.0.0.1:{line['port']}"
            system.fleet.add(NODES)
            until(system.quiet, "all pools at size")
            assigns = system.calls()["AssignPrivateIpAddresses"]
            least = {
                "nodes_ready{}": NODES,
                "state_up{}": 1,
                # Each of these is counted by another process, and each brings its counts when it is due.
                "task_run_seconds_count{eni.maintain_node,ok}": NODES,
                "task_wait_seconds_count{eni.publish_node}": NODES,
                "ec2_api_duration_seconds_count{AssignPrivateIpAddresses,OK}": assigns,
                "enqueued_total{maintain,sent}": NODES,
                "ipam_resync_total{}": 1,
            }

            def arrived() -> bool:
                now = scraped(http, url)
                return all(now.get(name, 0) >= value for name, value in least.items())

            exporter.until(arrived, "the workers' counts")
            assert scraped(http, url)["ec2_api_duration_seconds_count{AssignPrivateIpAddresses,OK}"] == assigns
            assert exporter.end() == 0
        assert "Traceback" not in exporter.said
