"""Who may reach whom, as far as NetworkPolicies reach: pods on their node's network are outside of it."""

from __future__ import annotations

from typing import Any

import pytest
from chart import VALUE_SETS, Object, container, objects, workloads

ON = {"networkPolicy": {"enabled": True}}
PROCESSES = {"watcher", "worker-ec2", "worker-apiserver", "worker-resync"}


def policies(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The policies' specs by their names, without the release's."""
    found = [o for o in objects(values) if o["kind"] == "NetworkPolicy"]
    return {o["metadata"]["name"].removeprefix("eni-tasks-"): o["spec"] for o in found}


def selected(spec: dict[str, Any], found: list[Object]) -> set[str]:
    """The components whose pods a policy is about."""

    def fits(labels: dict[str, str]) -> bool:
        selector = spec["podSelector"]
        exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
        return exact and all(labels.get(e["key"]) in e["values"] for e in selector.get("matchExpressions", ()))

    return {name for name, o in workloads(found).items() if fits(o["spec"]["template"]["metadata"]["labels"])}


def ports(rules: list[dict[str, Any]]) -> set[int]:
    return {port["port"] for rule in rules for port in rule["ports"]}


def test_without_being_asked_there_are_none():
    assert policies({}) == {}


@pytest.mark.parametrize("values", [VALUE_SETS["everything"], VALUE_SETS["flower-for-all"]], ids=["pods", "nodes"])
def test_each_policy_is_about_the_pods_that_it_is_named_for(values):
    found = objects(values)
    for name, spec in policies(values).items():
        assert selected(spec, found) == (PROCESSES if name == "processes" else {name})
        assert spec["policyTypes"] == ["Ingress", "Egress"]


def test_on_the_nodes_network_only_the_others_are_guarded():
    assert set(policies(ON)) == {"exporter", "redis"}
    # Who comes from there bears no label that a policy could see.
    assert policies(ON)["redis"]["ingress"] == [{"ports": [{"port": 6379, "protocol": "TCP"}]}]


def test_on_the_pods_network_redis_is_for_us_and_who_is_named():
    (rule,) = policies(VALUE_SETS["everything"])["redis"]["ingress"]
    ours, keda = rule["from"]
    assert ours["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "eni-tasks"
    assert keda == VALUE_SETS["everything"]["networkPolicy"]["redisFrom"][0]


def test_processes_reach_what_they_need_and_nobody_reaches_them():
    spec = policies(VALUE_SETS["everything"])["processes"]
    assert ports(spec["egress"]) == {53, 80, 443, 6443, 6379, 8443}
    assert spec.get("ingress", []) == []


def test_another_port_of_an_external_redis():
    spec = policies({**VALUE_SETS["external-redis"], "hostNetwork": False})
    assert set(spec) == {"exporter", "processes"}
    assert ports(spec["exporter"]["egress"]) == {53, 6380}


def test_what_is_shown_is_for_everybody_unless_told():
    given = policies(VALUE_SETS["everything"])
    assert given["exporter"]["ingress"][0]["from"] == [{"podSelector": {}}]
    assert "from" not in given["flower"]["ingress"][0]


@pytest.mark.parametrize(
    ("address", "reached"),
    [("", False), ("127.0.0.1", False), ("::1", False), ("0.0.0.0", True), ("::", True)],  # noqa: S104 - what is given
)
def test_the_status_page_is_behind_the_service_as_the_setting_says(address: str, *, reached: bool) -> None:
    values = {**ON, "settings": {"page_address": address}}
    found = objects(values)
    (service,) = [o for o in found if o["kind"] == "Service" and o["metadata"]["name"] == "eni-tasks-exporter"]
    given = container(workloads(found)["exporter"])
    shown = {"http": 9464, "page": 9465} if reached else {"http": 9464}
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == shown
    assert {port["name"]: port["containerPort"] for port in given["ports"]} == shown
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(shown)
    assert ports(policies(values)["exporter"]["ingress"]) == set(shown.values())
