"""Each alert of the chart fires when a running system is broken in the way that it is for, and clears afterwards.

Debian's Prometheus scrapes the real exporter. Times are quick: what a rule waits (`for`) is divided by FACTOR, and
limits in seconds are set as the chart's values allow. When exactly each rule fires, in its real times, is shown by
`tests/contract/alerts`. EniTasksRunsFailing is left to that: it is for bugs.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import prometheus_servers
import pytest
from prometheus_servers import Prometheus, quick_rules
from redis_servers import free_port
from waiting import until
from whole import System, running

from eni_tasks.model.network import ownership
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.running import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FACTOR = 480.0  # an hour is 7.5 s, half an hour 3.75 s, five minutes 0.6 s
LIMITS = {
    "deficitSeconds": 3,
    "unreadSeconds": 8,
    "overdueSeconds": 5,
    "overduePassSeconds": 4,
    "throttledSeconds": 10,
}
SETTINGS = {"ENI_TASKS_RESYNC_SECONDS": "2", "ENI_TASKS_ORPHAN_INTERVAL_SECONDS": "2"}
HEALTHY = [f"node-{number:04d}" for number in range(4)]
FULL = ("full-1", "full-2")
WORKERS = ("ec2", "apiserver", "resync")

pytestmark = pytest.mark.timeout(300)


class Watched:
    """A running system, its exporter, and the Prometheus that watches it."""

    def __init__(self, system: System, prometheus: Prometheus, exporter_port: int) -> None:
        self.system, self.prometheus, self._port = system, prometheus, exporter_port

    def start_exporter(self) -> None:
        sandbox = self.system.sandbox
        sandbox.children.start("exporter", "workers.exporter", ["--port", str(self._port)], sandbox.environment)

    def fires(self, *names: str) -> list[dict[str, str]]:
        """Wait until all of these fire; returns the labels of all that do."""
        try:
            until(lambda: self.prometheus.names() >= set(names), f"these fire: {', '.join(names)}")
        except AssertionError as error:
            error.add_note(f"firing: {sorted(self.prometheus.names())}")
            raise
        return self.prometheus.firing()

    def clears(self) -> None:
        """Wait until nothing fires."""
        try:
            until(lambda: not self.prometheus.names(), "nothing fires")
        except AssertionError as error:
            error.add_note(f"firing: {self.prometheus.firing()}")
            raise

    def late_kinds(self) -> set[str]:
        """The kinds of work of which EniTasksQueueNotMoving says that they are late."""
        return {
            labels["kind"] for labels in self.prometheus.firing() if labels["alertname"] == "EniTasksQueueNotMoving"
        }

    def create(self, name: str, spec: dict[str, Any], instance_type: str = "m5.large") -> None:
        """A node of its own instance, unless the spec names one."""
        ec2, world = self.system.ec2, self.system.fleet._world
        _, subnet = min(world["node_subnets"].items())
        if "instance-id" not in spec:
            instance = ec2.launch_instance(instance_type, subnet, groups=[world["node_group"]])
            eni = {
                "instance-type": instance_type,
                "vpc-id": instance.vpc_id,
                "availability-zone": instance.availability_zone,
                "first-interface-index": 0,
            }
            spec = {"ipam": {}, **spec, "instance-id": instance.id, "eni": {**eni, **spec.get("eni", {})}}
        body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": spec}
        self.system.fleet._call("POST", "", body)

    def delete(self, *names: str) -> None:
        for name in names:
            self.system.fleet._call("DELETE", f"/{name}", None)

    def cli(self, *arguments: str) -> None:
        answer = self.system.cli(*arguments)
        assert answer.returncode == 0, answer.stderr


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    port = free_port()
    with ExitStack() as stack:
        system = stack.enter_context(running(settings=SETTINGS, with_flower=False))
        prometheus = stack.enter_context(prometheus_servers.running(tmp_path, port, quick_rules(LIMITS, FACTOR)))
        watched = Watched(system, prometheus, port)
        watched.start_exporter()
        system.fleet.add(len(HEALTHY), types=("m5.large",), ipam={"pre-allocate": 4})
        until(lambda: system.full(len(HEALTHY)), "all pools are at size")
        until(lambda: prometheus.value("eni_tasks_nodes_ready") == len(HEALTHY), "Prometheus knows it")
        yield watched


def test_each_alert_fires_for_what_it_is_for_and_clears_afterwards(watched: Watched) -> None:
    watched.clears()
    _nodes_subnets_and_rights(watched)
    _workers_and_parts_that_hang(watched)
    until(lambda: watched.system.full(len(HEALTHY)), "all pools are at size again")
    until(lambda: watched.prometheus.value("eni_tasks_paused") == 0, "Prometheus sees the system again")
    watched.clears()


def _nodes_subnets_and_rights(watched: Watched) -> None:
    system = watched.system
    for name in FULL:
        watched.create(name, {"ipam": {"min-allocate": 30}}, "t3.medium")  # it can carry 15
    until(lambda: all(system.views()[name].reason == "at-capacity" for name in FULL), "two nodes are full")
    *_, subnet = sorted(system.fleet._world["pod_subnets"].values())
    orphan = system.ec2.add_interface(subnet, tags=ownership(CLUSTER))
    system.ec2.set_knobs(exhausted_subnets=[subnet], denied_actions=["CreateNetworkInterface"])
    system.ec2.add_faults(Fault(action="AssignPrivateIpAddresses", code="RequestLimitExceeded", status=503, times=None))
    system.use_more(HEALTHY[0], 4)  # throttled from now on
    watched.create("stuck", {"eni": {"first-interface-index": 1, "subnet-ids": ["subnet-none"]}})
    watched.create("refused", {"eni": {"first-interface-index": 1}})
    watched.create("twin", dict(system.fleet.get(HEALTHY[1])["spec"]))
    firing = watched.fires(
        *("EniTasksNodesInDeficit", "EniTasksNodesInTrouble", "EniTasksNodesAtCapacity", "EniTasksThrottled"),
        *("EniTasksInstanceClaimedTwice", "EniTasksSubnetNearlyEmpty", "EniTasksBreakerOpen", "EniTasksOrphans"),
    )
    found = {(labels["alertname"], labels.get("operation", labels.get("subnet_id"))) for labels in firing}
    assert found >= {
        ("EniTasksBreakerOpen", "CreateNetworkInterface"),
        ("EniTasksThrottled", "AssignPrivateIpAddresses"),
        ("EniTasksSubnetNearlyEmpty", subnet),
    }
    assert {labels["cluster"] for labels in firing} == {CLUSTER}

    system.ec2.set_knobs(exhausted_subnets=[], denied_actions=[])
    system.ec2.clear_faults()
    system.ec2.remove_interface(orphan.id)
    watched.delete(*FULL, "stuck", "refused", "twin")
    watched.cli("resume")  # closes the breaker at once
    watched.clears()


def _workers_and_parts_that_hang(watched: Watched) -> None:
    system, children = watched.system, watched.system.sandbox.children
    watched.cli("pause", "--why", "a test")
    for name in WORKERS:
        children.suspend(name)
    system.use_more(HEALTHY[2], 4)
    watched.cli("publish", HEALTHY[3])
    firing = watched.fires("EniTasksPaused", "EniTasksReadsFailing", "EniTasksQueueNotMoving")
    until(lambda: {"maintain", "publish", "fleet"} <= watched.late_kinds(), "the work of each queue is late")
    assert "EniTasksStateDown" not in {labels["alertname"] for labels in firing}

    children.suspend("redis")
    watched.fires("EniTasksStateDown")
    children.resume("redis")
    exporter = children.running.pop("exporter")
    exporter.kill()
    exporter.wait()
    watched.fires("EniTasksExporterMissing")
    watched.start_exporter()
    for name in WORKERS:
        children.resume(name)
    watched.cli("resume")
