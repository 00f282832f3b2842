"""A Prometheus server of Debian's that scrapes one exporter, with the chart's rules in quick time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import urllib3
import yaml
from chart import objects, one
from redis_servers import free_port
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRAPE_SECONDS = 3.0  # not less: the exporter needs two seconds to find that Redis is silent
EVALUATION_SECONDS = 0.5
_UNITS = {"s": 1, "m": 60, "h": 3600}


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = urllib3.PoolManager(retries=False, timeout=10.0)

    def ready(self) -> bool:
        try:
            return self._http.request("GET", f"{self._url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False  # not listening yet

    def firing(self) -> list[dict[str, str]]:
        """The labels of the alerts that fire now."""
        answer = self._http.request("GET", f"{self._url}/api/v1/alerts")
        assert answer.status == 200, answer.data
        return [alert["labels"] for alert in answer.json()["data"]["alerts"] if alert["state"] == "firing"]

    def names(self) -> set[str]:
        """The alerts that fire now, by name."""
        return {labels["alertname"] for labels in self.firing()}

    def value(self, query: str) -> float | None:
        """The value of the only series of a query; None if there is none."""
        answer = self._http.request("GET", f"{self._url}/api/v1/query", fields={"query": query})
        result = answer.json()["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def close(self) -> None:
        self._http.clear()


def quick_rules(limits: dict[str, float], factor: float) -> dict[str, Any]:
    """The rules that the chart installs.

    Args:
        limits: `monitoring.alerts.limits`.
        factor: by which each time that a rule waits or looks back is divided.
    """
    values = {"monitoring": {"alerts": {"enabled": True, "limits": limits}}}
    groups = one(objects(values), "PrometheusRule", "")["spec"]["groups"]
    for rule in [rule for group in groups for rule in group["rules"]]:
        rule["expr"] = re.sub(r"\[(\d+)([smh])\]", lambda found: f"[{_milliseconds(found, factor)}ms]", rule["expr"])
        if waits := re.fullmatch(r"(\d+)([smh])", rule.get("for", "")):
            rule["for"] = f"{_milliseconds(waits, factor)}ms"
    for group in groups:
        group["interval"] = f"{EVALUATION_SECONDS * 1000:.0f}ms"
    return {"groups": groups}


def _milliseconds(found: re.Match[str], factor: float) -> int:
    return max(1, round(1000 * int(found[1]) * _UNITS[found[2]] / factor))


@contextmanager
def running(folder: Path, exporter_port: int, rules: dict[str, Any]) -> Iterator[Prometheus]:
    """Run a server until the context ends.

    Args:
        folder: for its data.
        exporter_port: what it scrapes, on loopback.
        rules: as in a file of rules.
    """
    program = shutil.which("prometheus")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs prometheus: apt-get install prometheus")
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    scrape = f"{SCRAPE_SECONDS * 1000:.0f}ms"
    config = {
        "global": {"scrape_interval": scrape, "scrape_timeout": scrape},
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [
            {
                "job_name": "eni-tasks",
                "honor_labels": True,
                "static_configs": [{"targets": [f"127.0.0.1:{exporter_port}"]}],
            }
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [program, f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address={address}", "--log.level=warn"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    server = Prometheus(f"http://{address}")
    try:
        until(server.ready, "Prometheus is ready")
        yield server
    finally:
        server.close()
        process.kill()
        process.wait()
