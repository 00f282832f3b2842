"""Where each process runs and what it is given besides: for all of them, or for one."""

from __future__ import annotations

import re
from typing import Any

import helm_python
import pytest
from chart import NEAR_SYSTEM, PLACED, VALUE_SETS, container, environment, objects, pod, render, workloads

from eni_tasks.tasks.registry import QUEUES

PROCESSES = ("watcher", *(f"worker-{queue}" for queue in QUEUES))
SHOWING = ("exporter", "flower")
SETS = ("placed", "everything")
# Events about objects without a namespace are in `default`, and so is the right to write them.
OTHERWISE = {"ClusterRole": None, "ClusterRoleBinding": None, "Role": "default", "RoleBinding": "default"}

every_component = pytest.mark.parametrize("component", [*PROCESSES, *SHOWING, "redis"])


def placed() -> dict[str, Any]:
    return workloads(objects(VALUE_SETS["placed"]))


def names(listed: list[dict[str, Any]]) -> set[str]:
    return {each["name"] for each in listed}


@every_component
def test_maps_are_merged_lists_are_added_and_the_rest_is_replaced(component):
    workload = placed()[component]
    spec = pod(workload)
    assert spec["nodeSelector"] == {"pool": "system", "disk": "local"}
    keys = [toleration["key"] for toleration in spec["tolerations"]]
    assert keys[:2] == ["system", "batch"]
    assert ("node.cilium.io/agent-not-ready" in keys) is (component in PROCESSES)
    assert spec["affinity"] == PLACED["affinity"] != NEAR_SYSTEM
    assert spec["priorityClassName"] == "system-node-critical"
    metadata = workload["spec"]["template"]["metadata"]
    assert metadata["labels"].items() >= {"cost": "shared", "tier": "network", "owner": "net"}.items()
    assert metadata["annotations"]["note"] == "own"
    assert container(workload)["resources"] == PLACED["resources"]


@pytest.mark.parametrize("component", [*PROCESSES, *SHOWING])
def test_a_process_is_given_more(component):
    workload = placed()[component]
    given = container(workload)
    assert workload["spec"]["strategy"] == {"type": "Recreate"}
    (constraint,) = pod(workload)["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "rack"
    assert constraint["labelSelector"] == workload["spec"]["selector"]
    # What all watchers and workers get may be credentials: no business of what only shows.
    works = component in PROCESSES
    for listed, own, of_all in (
        (given["env"], "PYTHONMALLOC", "HTTPS_PROXY"),
        (given["volumeMounts"], "scratch", "cas"),
        (pod(workload)["volumes"], "scratch", "cas"),
    ):
        assert own in names(listed)
        assert (of_all in names(listed)) is works


def test_arguments_follow_those_of_the_command():
    assert container(placed()["flower"])["args"][-2:] == ["--max-tasks", "100"]


@pytest.mark.parametrize("component", [*PROCESSES, *SHOWING])
def test_pods_of_a_process_are_spread_by_default(component):
    workload = workloads(objects(VALUE_SETS["everything"]))[component]
    constraints = pod(workload)["topologySpreadConstraints"]
    assert [each["topologyKey"] for each in constraints] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    assert {each["whenUnsatisfiable"] for each in constraints} == {"ScheduleAnyway"}
    assert all(each["labelSelector"] == workload["spec"]["selector"] for each in constraints)


def test_a_constraint_keeps_the_selector_that_it_has():
    own = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    found = workloads(objects({"topologySpreadConstraints": [own]}))
    assert pod(found["watcher"])["topologySpreadConstraints"] == [own]


@pytest.mark.parametrize("name", VALUE_SETS)
def test_each_object_says_its_namespace_and_has_the_common_labels(name):
    for manifest in objects(VALUE_SETS[name] | {"commonLabels": {"owner": "net"}}, namespace="addresses"):
        metadata = manifest["metadata"]
        assert metadata["labels"]["owner"] == "net"
        assert metadata.get("namespace") == OTHERWISE.get(manifest["kind"], "addresses")


@pytest.mark.parametrize("name", SETS)
def test_every_pod_may_pull_its_image(name):
    found = objects(VALUE_SETS[name])
    pods = [pod(workload) for workload in workloads(found).values()]
    pods += [manifest["spec"] for manifest in found if manifest["kind"] == "Pod"]
    assert len(pods) == 8
    assert all(spec["imagePullSecrets"] == [{"name": "ours"}] for spec in pods)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"podLabels": {"app.kubernetes.io/name": "x"}},
            "podLabels: the label app.kubernetes.io/name is the chart's own",
        ),
        ({"commonLabels": {"helm.sh/chart": "x"}}, "commonLabels: the label helm.sh/chart is the chart's own"),
        (
            {"watcher": {"podLabels": {"app.kubernetes.io/component": "x"}}},
            "podLabels: the label app.kubernetes.io/component is the chart's own",
        ),
        (
            {"redis": {"bundled": {"podLabels": {"app.kubernetes.io/instance": "x"}}}},
            "podLabels: the label app.kubernetes.io/instance is the chart's own",
        ),
    ],
)
def test_a_label_that_selectors_need_is_refused(values, sentence):
    with pytest.raises(helm_python.HelmError, match=re.escape(sentence)):
        render(values)


@pytest.mark.parametrize("component", PROCESSES)
def test_pods_of_one_node_have_names_of_their_own(component):
    """With the node's network all have the node's host name, and the process id 1."""
    found = objects({})
    assert pod(workloads(found)[component])["hostNetwork"] is True
    (name,) = [each for each in container(workloads(found)[component])["env"] if each["name"] == "ENI_TASKS_POD_NAME"]
    assert name["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert "ENI_TASKS_POD_NAME" not in environment(found, component)
