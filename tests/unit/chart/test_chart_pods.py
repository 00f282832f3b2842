"""What the pods may do, how long they may take to end, and when they count as well."""

from __future__ import annotations

import os
import subprocess
import time
from math import ceil
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from chart import VALUE_SETS, container, environment, objects, pod, workloads

from eni_tasks.cli.commands import main
from eni_tasks.services import maintain, publish
from eni_tasks.settings import Settings, load
from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES = ("watcher", *(f"worker-{queue}" for queue in QUEUES))
EVERYTHING = VALUE_SETS["everything"]
PROBE_DIR = "/run/eni-tasks"


def everything() -> dict[str, Any]:
    return workloads(objects(EVERYTHING))


def test_each_queue_has_its_deployment_and_no_other():
    assert set(everything()) == {*PROCESSES, "exporter", "flower", "redis"}


@pytest.mark.parametrize("component", sorted(everything()))
def test_pods_may_do_nothing_that_they_need_not(component):
    workload = everything()[component]
    security = pod(workload)["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == (999 if component == "redis" else 10001)
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(workload)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container(workload)["resources"]["limits"]["memory"]


@pytest.mark.parametrize("component", ["exporter", "flower", "redis"])
def test_what_only_shows_or_stores_has_no_rights_and_no_place_on_the_nodes_network(component):
    for values in (EVERYTHING, VALUE_SETS["flower-for-all"]):
        spec = pod(workloads(objects(values)).get(component) or everything()[component])
        assert spec["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in spec
        assert "hostNetwork" not in spec


@pytest.mark.parametrize("component", PROCESSES)
def test_processes_run_on_nodes_that_have_no_addresses_yet(component):
    spec = pod(workloads(objects({}))[component])
    assert spec["hostNetwork"] is True
    assert {"key": "node.cilium.io/agent-not-ready", "operator": "Exists"} in spec["tolerations"]
    assert spec["priorityClassName"] == "system-cluster-critical"
    # An address of the pod network is no help before there are any: neither is the cluster's resolver.
    outside = pod(workloads(objects(VALUE_SETS["external-redis"]))[component])
    assert outside["dnsPolicy"] == "Default"


@pytest.mark.parametrize("component", [*PROCESSES, "exporter", "flower"])
def test_each_command_line_is_one_of_ours(component):
    """Parsed by the command itself, not run."""
    commands = typer.main.get_command(main).commands  # type: ignore[attr-defined]
    for values in (EVERYTHING, VALUE_SETS["flower-for-all"]):
        given = container(workloads(objects(values)).get(component) or everything()[component])
        assert given["command"] == ["eni-tasks"]
        command, *arguments = given["args"]
        commands[command].make_context(command, arguments)


def test_flower_is_asked_for_its_health_where_it_is_served():
    for name, path in (("everything", "/healthcheck"), ("flower-for-all", "/tools/flower/healthcheck")):
        given = container(workloads(objects(VALUE_SETS[name]))["flower"])
        assert given["livenessProbe"]["httpGet"]["path"] == path


@pytest.mark.parametrize("component", [*PROCESSES, "exporter", "flower"])
def test_each_variable_is_one_of_ours_and_nothing_adds_to_them(component, monkeypatch):
    for values in VALUE_SETS.values():
        found = objects(values)
        if component not in workloads(found):
            continue
        variables = {name: v for name, v in environment(found, component).items() if name.startswith("ENI_TASKS_")}
        for name in [*os.environ]:
            if name.startswith("ENI_TASKS_"):
                monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert isinstance(load(), Settings)
        # Kubernetes would make ENI_TASKS_REDIS_PORT and the like of our Services.
        assert pod(workloads(found)[component])["enableServiceLinks"] is False


@pytest.mark.parametrize(
    ("component", "longest"),
    [
        pytest.param("worker-ec2", lambda s: maintain.DEADLINE_SECONDS + 3 * s.ec2_timeout_seconds, id="ec2"),
        pytest.param("worker-apiserver", lambda s: publish.MAX_TRIES * 3 * s.kube_timeout_seconds, id="apiserver"),
        pytest.param("worker-resync", lambda s: 3 * s.ec2_timeout_seconds, id="resync"),
        pytest.param("watcher", lambda s: s.kube_timeout_seconds, id="watcher"),
    ],
)
@pytest.mark.parametrize("given", [{}, {"ec2_timeout_seconds": 7.5, "kube_timeout_seconds": 33}])
def test_ten_seconds_more_than_the_longest_work_to_end(component, longest, given):
    grace_seconds = pod(workloads(objects({"settings": given}))[component])["terminationGracePeriodSeconds"]
    least_seconds = ceil(longest(Settings(**given))) + 10
    assert least_seconds <= grace_seconds <= least_seconds + 20


@pytest.mark.parametrize("component", PROCESSES)
def test_capacity_never_falls_during_a_rollout(component):
    assert everything()[component]["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize("component", PROCESSES)
def test_probes_look_at_the_files_that_the_process_keeps(component, tmp_path):
    given = container(everything()[component])
    assert environment(objects(EVERYTHING), component)["ENI_TASKS_PROBE_DIR"] == PROBE_DIR
    assert PROBE_DIR in [mount["mountPath"] for mount in given["volumeMounts"]]
    startup, live, ready = (given[f"{kind}Probe"]["exec"]["command"] for kind in ("startup", "liveness", "readiness"))
    assert not passes(startup, tmp_path)
    assert not passes(live, tmp_path)
    assert not passes(ready, tmp_path)

    (tmp_path / "alive").touch()
    assert passes(startup, tmp_path)
    assert passes(live, tmp_path)
    assert not passes(ready, tmp_path)
    (tmp_path / "ready").touch()
    assert passes(ready, tmp_path)

    # Away for a good reason until then, such as a Redis that doesn't answer.
    for turned_last, well in ((time.time() - 95, False), (time.time() + 3600, True)):
        os.utime(tmp_path / "alive", (turned_last, turned_last))
        assert passes(live, tmp_path) is well


def test_a_new_version_of_ours_does_not_restart_redis():
    redis = workloads(objects({}))["redis"]["spec"]
    assert redis["template"]["metadata"]["labels"] == redis["selector"]["matchLabels"]
    assert "annotations" not in redis["template"]["metadata"]


def passes(command: list[str], folder: Path) -> bool:
    here = [part.replace(PROBE_DIR, str(folder)) for part in command]
    return subprocess.run(here, check=False, capture_output=True).returncode == 0
