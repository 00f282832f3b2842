"""What the API server lets us do, asked for; and a right that is taken away is named."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from contract.kube_servers import SERVICE, STRANGER, KubeTarget

from eni_tasks.adapters.kube.access import KubeAccess
from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.services.doctor.cluster_checks import NEEDED, examine_cluster
from eni_tasks.services.doctor.findings import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/eni-tasks"
RIGHTS = [(verb, f"ciliumnodes{'/' + part if part else ''}") for verb, part, _ in NEEDED]
RIGHTS += [("list", "pods"), ("watch", "pods")]


def access(target: KubeTarget, folder: Path, token: str = SERVICE) -> KubeAccess:
    return KubeAccess(KubeClient(10, 2, str(target.kubeconfig(folder / "kubeconfig", token))))


def troubles(target: KubeTarget, folder: Path, token: str = SERVICE) -> list[Finding]:
    findings, _ = examine_cluster(lambda: access(target, folder, token), surge=True)
    return [finding for finding in findings if finding.verdict is Verdict.TROUBLE]


def test_what_is_served(kube: KubeTarget, tmp_path: Path) -> None:
    assert access(kube, tmp_path).serves() >= {"ciliumnodes", "ciliumnodes/status"}


def test_our_rights_are_enough(kube: KubeTarget, tmp_path: Path) -> None:
    assert troubles(kube, tmp_path) == []


def test_the_clock_is_told_by_the_real_one(kube: KubeTarget, tmp_path: Path) -> None:
    now = access(kube, tmp_path).now()
    if kube.kind == "real":
        assert now is not None
        assert abs(now - time.time()) < 5
    else:
        assert now is None


@pytest.fixture
def without(kube: KubeTarget, knobs: Callable[..., None]) -> Iterator[Callable[[str, str], None]]:
    """Takes one right from our service, and gives it back."""
    role: dict[str, Any] = {} if kube.admin else kube.call("GET", ROLE)[1]

    def take(verb: str, resource: str) -> None:
        if kube.admin:
            knobs(denied=[f"{verb} {resource}"])
            return
        put(
            [
                {**rule, "verbs": [v for v in rule["verbs"] if (v, rule["resources"]) != (verb, [resource])]}
                for rule in role["rules"]
            ]
        )

    def put(rules: list[dict[str, Any]]) -> None:
        kept = [rule for rule in rules if rule["verbs"]]
        code, answer = kube.call("PUT", ROLE, {**role, "metadata": {"name": "eni-tasks"}, "rules": kept})
        assert code == 200, answer

    yield take
    if role:
        put(role["rules"])


@pytest.mark.parametrize(("verb", "resource"), RIGHTS, ids=[" ".join(right) for right in RIGHTS])
def test_a_right_that_is_taken_away_is_named(
    kube: KubeTarget, tmp_path: Path, without: Callable[[str, str], None], verb: str, resource: str
) -> None:
    without(verb, resource)
    deadline = time.monotonic() + 20
    while not (found := troubles(kube, tmp_path)):  # the server's own rules follow a moment later
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [finding.what for finding in found] == [f"{verb} {resource}"]
    assert f'the verb "{verb}" on {resource}' in found[0].advice


def test_a_stranger_may_nothing(tmp_path: Path, kube: KubeTarget) -> None:
    if kube.kind == "real":
        found = troubles(kube, tmp_path, STRANGER)
        assert [finding.what for finding in found] == [" ".join(right) for right in RIGHTS]


@pytest.mark.parametrize(
    ("token", "words"),
    [("nobody's", "Unauthorized"), (None, "The Kubernetes API can't be reached")],
    ids=["unknown-token", "no-kubeconfig"],
)
def test_no_way_in_is_one_finding(
    kube: KubeTarget, tmp_path: Path, knobs: Callable[..., None], token: str | None, words: str
) -> None:
    if kube.admin:
        knobs(token=SERVICE)

    def connect() -> KubeAccess:
        if token is None:
            return KubeAccess(KubeClient(10, 2, str(tmp_path / "missing")))
        return access(kube, tmp_path, token)

    findings, _ = examine_cluster(connect, surge=True)
    assert [finding.verdict for finding in findings] == [Verdict.TROUBLE]
    assert words in findings[0].message
    assert findings[0].advice


def test_an_absent_server_is_one_finding(tmp_path: Path) -> None:
    nowhere = KubeTarget("none", "http://127.0.0.1:1")
    found = troubles(nowhere, tmp_path)
    assert [finding.what for finding in found] == ["reachable"]
