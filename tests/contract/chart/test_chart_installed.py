"""The chart on a real API server: what it takes, what an upgrade keeps, and what the rights given are enough for."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from chart import NAMESPACE, RELEASE, VALUE_SETS, Object, Values, objects, with_cluster
from contract.kube_servers import NODES, KubeTarget

from eni_tasks.adapters.kube.access import KubeAccess
from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.events import KubeEvents
from eni_tasks.adapters.kube.feed import KubeNodeFeed, KubePodFeed
from eni_tasks.adapters.kube.nodes import KubeNodes
from eni_tasks.errors import ClusterRefused, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.node_event import NodeEvent
from eni_tasks.ports.kube import Changes
from eni_tasks.services.doctor.cluster_checks import examine_cluster
from eni_tasks.services.doctor.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path

Helm = Callable[[str, Values], None]


NO_CHANGE = [{"op": "test", "path": "/kind", "value": "CiliumNode"}]


def path_of(api: KubeTarget, manifest: Object) -> str:
    """Where objects of this kind are; nothing if the server doesn't know the kind (it may be old, or lack CRDs)."""
    version = manifest["apiVersion"]
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    code, found = api.call("GET", root)
    for resource in found["resources"] if code == 200 else []:
        if resource["kind"] == manifest["kind"] and "/" not in resource["name"]:
            namespace = f"namespaces/{manifest['metadata']['namespace']}/" if resource["namespaced"] else ""
            return f"{root}/{namespace}{resource['name']}"
    return ""


def test_the_api_server_takes_each_object(real_kube: KubeTarget) -> None:
    """It validates and defaults each, and stores nothing."""
    taken = set()
    for name, values in VALUE_SETS.items():
        for manifest in objects(values):
            if path := path_of(real_kube, manifest):
                code, answer = real_kube.call("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
                assert code == 201, f"{name}: {manifest['kind']} {manifest['metadata']['name']}: {answer}"
                taken.add(manifest["kind"])
    assert taken >= {"ClusterRole", "Deployment", "NetworkPolicy", "Secret", "Service", "StatefulSet"}


def test_an_upgrade_keeps_the_password_and_nothing_stays_behind(real_kube: KubeTarget, helm: Helm) -> None:
    def read(kind: str, name: str) -> Any:
        code, found = real_kube.call("GET", f"/api/v1/namespaces/{NAMESPACE}/{kind}/{RELEASE}-{name}")
        assert code == 200, found
        return found["data"]

    # An old server knows no policy/v1.
    values = with_cluster({"podDisruptionBudgets": {"enabled": False}})
    helm("install", values)
    first = read("secrets", "redis")
    assert len(base64.b64decode(first["password"])) == 32
    helm("upgrade", {**values, "settings": {"cluster": "demo", "resync_seconds": 30}})
    assert read("secrets", "redis") == first
    given = {"ENI_TASKS_CLUSTER": "demo", "ENI_TASKS_KUBE_EVENTS": "ciliumnodes", "ENI_TASKS_RESYNC_SECONDS": "30"}
    assert read("configmaps", "settings") == given
    helm("uninstall", {})
    for manifest in objects(values):
        path = f"{path_of(real_kube, manifest)}/{manifest['metadata']['name']}"
        assert real_kube.call("GET", path)[0] == 404


class Rights:
    """Every call that our processes make, with the chart's own service account and role."""

    def __init__(self, api: KubeTarget, folder: Path) -> None:
        self._api = api
        # Another name than that of an installed release.
        self._objects = found = [
            o
            for o in objects({"fullnameOverride": "rights"})
            if o["kind"] in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        ]
        for manifest in found:
            code, answer = api.call("POST", path_of(api, manifest), manifest)
            assert code == 201, answer
        self.roles = [o for o in found if o["kind"] in ("ClusterRole", "Role")]
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/rights/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        code, answer = api.call("POST", path, request)
        assert code == 201, answer
        token = answer["status"]["token"]
        self._client = KubeClient(10, 4, kubeconfig=str(api.kubeconfig(folder / "account", token=token)))

    def remove(self) -> None:
        """Deletes the account and its role."""
        for manifest in self._objects:
            path = f"{path_of(self._api, manifest)}/{manifest['metadata']['name']}"
            assert self._api.call("DELETE", path)[0] == 200

    def change(self, role: Object, rules: list[dict[str, Any]]) -> None:
        """Gives a role these rules."""
        path = f"{path_of(self._api, role)}/{role['metadata']['name']}"
        given = [rule for rule in rules if rule["verbs"]]
        code, answer = self._api.call("PUT", path, {**role, "rules": given})
        assert code == 200, answer

    def refused(self) -> set[str]:
        """Makes all calls; returns those that the server refuses."""
        nodes, feed = KubeNodes(self._client), KubeNodeFeed(self._client, 5)
        pods, name = KubePodFeed(self._client, 5), NodeName("node")
        told = NodeEvent(node=name, uid="uid", reason=f"Told{uuid.uuid4().hex}", message="the first of its kind")
        events = KubeEvents(self._client, "pod", on_nodes=False)
        calls = {
            "list ciliumnodes": lambda: list(feed.pages()),
            "watch ciliumnodes": lambda: _open_and_close(feed.changes("0", 1)),
            "get ciliumnodes": lambda: nodes.get(name),
            "patch ciliumnodes": lambda: nodes.patch_spec(name, NO_CHANGE),
            "patch ciliumnodes/status": lambda: nodes.patch_status(name, NO_CHANGE),
            "list pods": lambda: list(pods.pages()),
            "watch pods": lambda: _open_and_close(pods.changes("0", 1)),
            "create events": lambda: events.write(told),
            "patch events": lambda: events._patch("none", {}),
        }
        refusals = set()
        for what, call in calls.items():
            try:
                call()
            except ClusterRefused:
                refusals.add(what)
            except NodeGone:
                assert what == "patch events"  # there is none of that name, which is found out after the right
        return refusals

    def missed_by_doctor(self) -> set[str]:
        """What doctor complains about."""
        findings, _ = examine_cluster(lambda: KubeAccess(self._client), surge=True, kube_events=True)
        return {finding.what for finding in findings if finding.verdict is Verdict.TROUBLE}


def _open_and_close(stream: Generator[Changes[Any], None, None]) -> None:
    with closing(stream):
        next(stream)


@pytest.fixture
def rights(real_kube: KubeTarget, tmp_path: Path) -> Iterator[Rights]:
    body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "node"}, "spec": {}}
    assert real_kube.call("POST", NODES, body)[0] == 201
    given = Rights(real_kube, tmp_path)
    yield given
    given.remove()
    assert real_kube.call("DELETE", f"{NODES}/node")[0] == 200


def test_the_role_is_enough_and_doctor_names_each_verb_that_is_taken_away(rights: Rights) -> None:
    until(rights.refused, set())
    assert rights.missed_by_doctor() == set()
    for role in rights.roles:
        for place, rule in enumerate(role["rules"]):
            for verb in rule["verbs"]:
                less = [dict(each) for each in role["rules"]]
                less[place]["verbs"] = [other for other in rule["verbs"] if other != verb]
                rights.change(role, less)
                (resource,) = rule["resources"]
                until(rights.refused, {f"{verb} {resource}"})
                assert rights.missed_by_doctor() == {f"{verb} {resource}"}
        rights.change(role, role["rules"])
        until(rights.refused, set())


def until(look: Callable[[], set[str]], wanted: set[str]) -> None:
    """Looks until it is so: the server takes a moment to see a changed role."""
    deadline = time.monotonic() + 20
    while (found := look()) != wanted:
        assert time.monotonic() < deadline, f"{found}, not {wanted}"
        time.sleep(0.05)
