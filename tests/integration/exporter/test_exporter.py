"""What Prometheus sees, scraped over HTTP: totals from shared state, and no series of nodes that are gone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import redis_servers
from exporter_under_test import Exporter, exporting, of

from eni_tasks.errors import InvalidInput
from eni_tasks.exporter import collector
from eni_tasks.exporter.collector import StateCollector
from eni_tasks.exporter.serving import make_server
from eni_tasks.model.work import Pass
from eni_tasks.observability.metrics import METRICS, PREFIX, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumped import System


@pytest.fixture
def exporter(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    """One that reads again for every scrape."""
    monkeypatch.setattr(collector, "KEPT_SECONDS", 0.0)
    with exporting(system.services) as exporter:
        yield exporter


def test_a_deleted_node_is_gone_at_the_next_scrape(system: System, exporter: Exporter) -> None:
    """B79: no stale series, totals of what is left, and room is shown where nothing is needed."""
    for name in ("a", "b", "c"):
        system.add_node(name)
    system.settle()
    system.use(3, "a")
    system.settle()
    before = exporter.scrape()
    pools = {name: len(system.pool(name)) for name in ("a", "b", "c")}
    assert of(before, "ipam_pool_ips") == pools
    assert of(before, "ipam_ips") == {"available": sum(pools.values()), "used": 3, "needed": 0}
    assert of(before, "ipam_nodes") == {"total": 3, "in-deficit": 0, "at-capacity": 0}
    # An m5.large carries 3 interfaces with 9 addresses for pods each: one of the three is full by now.
    assert of(before, "ipam_available_ips") == {"a": 27, "b": 27, "c": 27}
    slots, candidates = before["ipam_empty_interface_slots", ()], before["ipam_interface_candidates", ()]
    assert slots == sum(3 - len(system.object(name)["status"]["eni"]["enis"]) for name in pools)
    assert before["ipam_available_interfaces", ()] == slots + candidates > 0
    assert before["nodes_ready", ()] == 3
    assert before["oldest_deficit_seconds", ()] == 0

    system.kube.store.delete("b")
    system.ingest()
    after = exporter.scrape()
    assert not [labels for _, labels in after if "b" in labels]
    assert of(after, "ipam_pool_ips") == {"a": pools["a"], "c": pools["c"]}
    assert of(after, "ipam_ips") == {"available": pools["a"] + pools["c"], "used": 3, "needed": 0}
    assert of(after, "ipam_nodes")["total"] == 2


def test_nodes_that_wait_are_in_deficit_with_their_reason(system: System, exporter: Exporter) -> None:
    """S-22: computed from state, so what no run has looked at yet counts as well."""
    system.add_node("new")
    system.ingest()
    assert of(exporter.scrape(), "nodes")["instance-not-read"] == 1
    assert "new" not in of(exporter.scrape(), "ipam_available_ips")
    system.services.state.limiter.pause("ada", "maintenance")
    system.settle()
    scraped = exporter.scrape()
    assert of(scraped, "ipam_nodes") == {"total": 1, "in-deficit": 1, "at-capacity": 0}
    assert of(scraped, "ipam_needed_ips") == {"new": 8}
    assert of(scraped, "nodes")["deficit"] == 1
    assert scraped["paused", ()] == 1
    assert 0 < scraped["oldest_deficit_seconds", ()] < 60
    assert scraped["work_entries", ("maintain", "waiting")] == 1


def test_falling_behind_is_a_gauge(system: System, exporter: Exporter) -> None:
    """A node that can't be served leaves the watchers ready: it is seen here."""
    system.add_node()
    system.ingest()
    assert exporter.scrape()["falls_behind", ()] == 0
    system.later(system.services.settings.stuck_seconds + 1)
    assert exporter.scrape()["falls_behind", ()] == 1
    system.settle()
    system.resync()
    assert exporter.scrape()["falls_behind", ()] == 0


def test_a_full_node_is_at_capacity(system: System, exporter: Exporter) -> None:
    system.add_node("small", ipam={"pre-allocate": 50})
    system.settle()
    scraped = exporter.scrape()
    assert of(scraped, "ipam_nodes") == {"total": 1, "in-deficit": 0, "at-capacity": 1}
    assert of(scraped, "nodes")["at-capacity"] == 1
    assert of(scraped, "ipam_pool_ips") == of(scraped, "ipam_available_ips")
    assert scraped["ipam_available_interfaces", ()] == 0


def test_an_object_that_is_not_understood_is_a_node_all_the_same(system: System, exporter: Exporter) -> None:
    system.add_node("odd", ipam={"pre-allocate": 10**15})
    system.ingest()
    scraped = exporter.scrape()
    assert of(scraped, "nodes")["object-not-understood"] == 1
    assert of(scraped, "ipam_nodes")["total"] == 1


def test_subnets_less_what_was_taken_since_they_were_described(system: System, exporter: Exporter) -> None:
    system.add_node()
    system.settle()
    scraped = exporter.scrape()
    described = system.services.state.network.infrastructure()
    assert described is not None
    free = {(subnet.availability_zone, subnet.id): subnet.free for subnet in described.subnets.values()}
    shown = {labels: value for (name, labels), value in scraped.items() if name == "ipam_available_ips_per_subnet"}
    assert shown.keys() == free.keys()
    assert sum(free.values()) - sum(shown.values()) == 8
    assert scraped["infrastructure_age_seconds", ()] < 60


def test_what_processes_counted(system: System, exporter: Exporter) -> None:
    """B80: releases, assigns and creations are apart, each with its subnet and what EC2 confirmed."""
    meter = system.services.counters
    meter.count("ipam_ip_release_ops", {"subnet_id": "a"}, 5)
    meter.count("ipam_interface_creation_ops", {"subnet_id": "b"})
    meter.count("ipam_ip_allocation_ops", {"subnet_id": "b"}, 8)
    meter.count("orphans_deleted_total")
    for seconds in (0.3, 0.3, 7, 100):
        labels = {"type": "allocateIP", "status": "success", "subnet_id": "b"}
        meter.observe("ipam_allocation_duration_seconds", labels, seconds)
    with system.services.counter_flusher():
        pass
    scraped = exporter.scrape()
    assert of(scraped, "ipam_ip_release_ops") == {"a": 5}
    assert of(scraped, "ipam_interface_creation_ops") == {"b": 1}
    assert of(scraped, "ipam_ip_allocation_ops") == {"b": 8}
    assert scraped["orphans_deleted_total", ()] == 1
    series = ("success", "b", "allocateIP")
    name = "ipam_allocation_duration_seconds"
    assert scraped[f"{name}_sum", series] == pytest.approx(107.6)
    assert scraped[f"{name}_count", series] == 4
    buckets = {bound: scraped[f"{name}_bucket", (bound, *series)] for bound in ("0.25", "0.5", "5.0", "10.0", "+Inf")}
    assert buckets == {"0.25": 0, "0.5": 2, "5.0": 2, "10.0": 3, "+Inf": 4}


def test_ec2_calls_and_enqueued_work_count_by_themselves(system: System, exporter: Exporter) -> None:
    system.add_node()
    system.settle_reads()
    system.services.work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
    system.services.work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
    system.settle()
    with system.services.counter_flusher():
        pass
    scraped = exporter.scrape()
    for action, codes in system.ec2.counts().items():
        for code, count in codes.items():
            assert scraped["ec2_api_duration_seconds_count", (action, code or "OK")] == count
    assert scraped["enqueued_total", ("fleet", "merged")] >= 1
    assert scraped["enqueued_total", ("maintain", "sent")] >= 1


def test_another_versions_sums_are_left_out(system: System, exporter: Exporter) -> None:
    key = system._keys.counters
    system.redis.hset(key, '["gone_total","",[]]', 1)
    system.redis.hset(key, '["enqueued_total","",["too","many","labels"]]', 1)
    system.redis.hset(key, '["enqueued_total","",["maintain","sent"]]', 2)
    scraped = exporter.scrape()
    assert [value for (name, _), value in scraped.items() if name in {"gone_total", "enqueued_total"}] == [2]


def test_totals_stay_when_series_per_node_are_off(system: System) -> None:
    system.add_node()
    system.settle()
    system._settings["node_metrics"] = False
    system.services = system.process()
    with exporting(system.services) as exporter:
        scraped = exporter.scrape()
    per_node = {metric.name for metric in METRICS.values() if metric.per_node}
    assert not [name for name, _ in scraped if name in per_node]
    assert of(scraped, "ipam_ips")["available"] == 8


def test_many_scrapes_cost_one_read(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "KEPT_SECONDS", 60.0)
    summary, reads = system.services.state.summary, []
    read = summary.read
    monkeypatch.setattr(summary, "read", lambda queues: (reads.append(1), read(queues))[1])
    with exporting(system.services) as exporter:
        threads = [threading.Thread(target=exporter.get, args=("/metrics",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(reads) == 1


def test_without_redis_it_says_so_and_stays_healthy(
    system: System, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(collector, "KEPT_SECONDS", 0.0)
    with redis_servers.running() as url:
        system._settings["redis_url"] = url
        system.services = system.process()
    with exporting(system.services) as exporter:
        assert exporter.scrape() == {("state_up", ()): 0, ("build_info", tuple(reversed(collector.BUILD.labels))): 1}
        assert exporter.get("/healthz").status == 200


@pytest.mark.parametrize(("path", "status"), [("/metrics", 200), ("/healthz", 200), ("/", 404), ("/metricsx", 404)])
def test_paths(exporter: Exporter, path: str, status: int) -> None:
    assert exporter.get(path).status == status


def test_an_address_that_is_taken_is_named(exporter: Exporter) -> None:
    port = int(exporter.url.rpartition(":")[2])
    with pytest.raises(InvalidInput, match=f"can't listen on 127.0.0.1 port {port}"):
        make_server(StateCollector.__new__(StateCollector), "127.0.0.1", port)


def test_openmetrics_is_spoken_to_those_who_ask_for_it(system: System, exporter: Exporter) -> None:
    system.services.counters.count("ipam_ip_allocation_ops", {"subnet_id": "b"}, 8)
    with system.services.counter_flusher():
        pass
    answer = exporter.http.request(
        "GET", exporter.url + "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    series = f'eni_tasks_ipam_ip_allocation_ops{{cluster="{system.services.settings.cluster}",subnet_id="b"}} 8.0'
    assert series in answer.data.decode()
    assert answer.data.endswith(b"# EOF\n")


def test_every_documented_metric_can_be_seen(system: System, exporter: Exporter) -> None:
    system.add_node()
    system.settle()
    system.services.state.limiter.throttled("CreateNetworkInterface")
    system.redis.hset(system._keys.switches, "read_at", round(system.services.state.now() * 1000))
    meter = system.services.counters
    for metric in METRICS.values():
        labels = dict.fromkeys(metric.labels, "x")
        if metric.kind is Kind.HISTOGRAM:
            meter.observe(metric.name, labels, 1)
        elif metric.kind is not Kind.GAUGE:
            meter.count(metric.name, labels)
    with system.services.counter_flusher():
        pass
    text = exporter.get("/metrics").data.decode()
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {PREFIX + name for name in METRICS} - shown == set()
