"""The simulated agents: what they write, what they accept, and how they report to a real API."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.errors import NodeGone
from eni_tasks.sandbox.ec2.admin import Ec2Admin
from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.ec2.world import build_default_world
from eni_tasks.sandbox.fleet import Agent, Agent16, Fleet
from eni_tasks.sandbox.fleet.agent120 import agent_of
from eni_tasks.sandbox.kube.admin import KubeAdmin, write_kubeconfig
from eni_tasks.sandbox.kube.server import KubeServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ADDRESSES = [f"10.0.0.{last}" for last in range(10, 18)]


def shown(count: int = 8, *, old: bool = False, ipam: dict[str, Any] | None = None, **interface: Any) -> dict[str, Any]:
    """An object whose pool has `count` addresses of eni-1."""
    pool = {address: {"resource": "eni-1"} for address in ADDRESSES[:count]}
    eni = {
        "id": "eni-1",
        "addresses": ADDRESSES[:count],
        "subnet": {"id": "subnet-1", "cidr": "10.0.0.0/24"},
        "vpc": {"id": "vpc-1", "primary-cidr": "10.0.0.0/16"},
    } | interface
    spec = {"eni": {"instance-id": "i-1"}} if old else {"instance-id": "i-1", "eni": {}}
    (spec["eni"] if old else spec.setdefault("ipam", {})).update(ipam or {})
    spec.setdefault("ipam", {})["pool"] = pool
    status = {"eni": {"enis": {"eni-1": eni}}}
    return {"metadata": {"uid": "u", "name": "n"}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("interface", "reason"),
    [
        ({"vpc": {"id": "vpc-1"}}, "VPC Primary CIDR not set for ENI eni-1"),
        ({"vpc": {"primary-cidr": "10.0.0.0/16", "cidrs": ["100.64.0.0/16", ""]}}, "VPC CIDR not set for ENI eni-1"),
        ({"addresses": ADDRESSES[:-1]}, f"Address {ADDRESSES[-1]} not found on ENI eni-1"),
    ],
    ids=["no VPC CIDR", "an empty CIDR", "address not listed"],
)
def test_an_inconsistent_version_is_ignored_as_a_whole(interface: dict[str, Any], reason: str) -> None:
    agent = Agent(shown(4))
    agent.set_pod_count(4)
    agent.observe(shown(8, **interface))
    assert agent.refusal == reason
    agent.set_pod_count(8)
    assert agent.used == ADDRESSES[:4]
    agent.observe(shown(8))
    assert agent.refusal == ""
    agent.set_pod_count(8)
    assert agent.used == ADDRESSES


def test_a_pool_that_names_an_unknown_interface_is_ignored() -> None:
    obj = shown(8)
    obj["spec"]["ipam"]["pool"]["10.0.0.99"] = {"resource": "eni-2"}
    agent = Agent(obj)
    assert agent.refusal == "ENI eni-2 not found in status"
    agent.set_pod_count(1)
    assert agent.used == []
    # The agent of 1.6 takes it, but gives no pod an address of an interface that it does not know.
    obj["spec"]["eni"]["instance-id"] = obj["spec"].pop("instance-id")
    old = agent_of(obj)
    old.set_pod_count(9)
    assert (type(old), old.refusal, old.used) == (Agent16, "", ADDRESSES)


@pytest.mark.parametrize(
    ("ipam", "needed"),
    [({}, 2), ({"pre-allocate": 5}, 5), ({"min-allocate": 3, "pre-allocate": 5}, 3)],
    ids=["no watermark", "pre-allocate", "min-allocate first"],
)
@pytest.mark.parametrize("old", [False, True], ids=["1.8", "1.6"])
def test_an_agent_starts_when_its_pool_is_large_enough(ipam: dict[str, int], needed: int, *, old: bool) -> None:
    agent = agent_of(shown(needed - 1, old=old, ipam=ipam))
    agent.set_pod_count(1)
    assert agent.used == []
    agent.observe(shown(needed, old=old, ipam=ipam))
    agent.set_pod_count(1)
    assert agent.used == ADDRESSES[:1]
    # It has started: a smaller pool does not stop it.
    agent.observe(shown(needed - 1, old=old, ipam=ipam))
    agent.set_pod_count(needed - 1)
    assert agent.used == ADDRESSES[: max(1, needed - 1)]


def test_a_pod_keeps_an_address_that_has_left_the_pool() -> None:
    agent = Agent(shown(8))
    agent.set_pod_count(8)
    agent.observe(shown(4))
    agent.set_pod_count(8)
    assert agent.used == ADDRESSES
    assert set(agent.report(shown(4))["status"]["ipam"]["used"]) == set(ADDRESSES)


def test_a_report_is_the_whole_status_and_changes_nothing_else() -> None:
    obj = shown(4)
    obj["status"]["ipam"] = {"release-ips": {"10.0.0.12": "do-not-release"}, "operator-status": {"error": "x"}}
    before = copy.deepcopy(obj)
    agent = Agent(obj)
    agent.set_pod_count(1)
    report = agent.report(obj)
    assert obj == before
    used = {ADDRESSES[0]: {"owner": f"default/pod-{ADDRESSES[0]}", "resource": "eni-1"}}
    assert report["status"] == {**before["status"], "ipam": {**before["status"]["ipam"], "used": used}}
    assert report["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("address", "state", "answer"),
    [
        (ADDRESSES[0], "marked-for-release", "do-not-release"),  # a pod uses it
        (ADDRESSES[3], "marked-for-release", "ready-for-release"),
        ("10.0.0.99", "marked-for-release", "do-not-release"),  # not in the pool
        (ADDRESSES[3], "ready-for-release", "ready-for-release"),
        (ADDRESSES[0], "do-not-release", "do-not-release"),
        (ADDRESSES[3], "released", "released"),  # the pool still has it
        ("10.0.0.99", "released", None),
    ],
)
@pytest.mark.parametrize("old", [False, True], ids=["1.12", "1.6"])
def test_the_release_hand_shake(address: str, state: str, answer: str | None, *, old: bool) -> None:
    obj = shown(4, old=old)
    agent = agent_of(obj)
    agent.set_pod_count(1)
    obj["status"]["ipam"] = {"release-ips": {address: state}}
    agent.observe(obj)
    answered = agent.report(obj)["status"]["ipam"]["release-ips"]
    assert answered == ({address: state} if old else {address: answer} if answer else {})


@pytest.mark.parametrize("state", ["marked-for-release", "ready-for-release", "released", "do-not-release"])
def test_no_further_pod_gets_an_address_that_may_be_released(state: str) -> None:
    obj = shown(4)
    obj["status"]["ipam"] = {"release-ips": {ADDRESSES[1]: state}}
    agent = Agent(obj)
    agent.set_pod_count(4)
    assert (ADDRESSES[1] in agent.used) == (state == "do-not-release")
    # Even if it was used once and is free again, as soon as the operator begins.
    agent.observe(shown(4))
    agent.set_pod_count(4)
    assert agent.used == sorted(
        ADDRESSES[:4], key=lambda each: (each == ADDRESSES[1] and state != "do-not-release", each)
    )


@pytest.mark.parametrize("why", ["no pool", "ignored"])
def test_an_agent_without_an_accepted_pool_does_not_answer(why: str) -> None:
    obj = shown(0) if why == "no pool" else shown(4, addresses=[])
    obj["status"]["ipam"] = {"release-ips": {ADDRESSES[0]: "marked-for-release", "10.0.0.99": "released"}}
    assert Agent(obj).report(obj) == obj


def test_a_restarted_agent_finds_its_pods_again() -> None:
    agent = Agent(shown(4))
    agent.set_pod_count(3)
    again = Agent(agent.report(shown(1)))
    assert again.used == ADDRESSES[:3]


# -- on a Kubernetes API -------------------------------------------------------------------------------
@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[Fleet, KubeServer]]:
    built = build_default_world()
    with Ec2Server(built.world) as ec2, KubeServer() as kube:
        world = {"node_subnets": built.node_subnets, "pod_subnets": built.pod_subnets, "node_group": built.node_group}
        client = KubeClient(10, 4, str(write_kubeconfig(tmp_path / "kubeconfig", kube.url)))
        yield Fleet(Ec2Admin(ec2.url), world, client), kube


def publish(kube: KubeServer, name: str, count: int = 8) -> None:
    """Show a pool, as an operator does."""
    source = shown(count)

    def change(body: dict[str, Any]) -> dict[str, Any]:
        body["spec"].setdefault("ipam", {})["pool"] = source["spec"]["ipam"]["pool"]
        body.setdefault("status", {})["eni"] = source["status"]["eni"]
        return body

    kube.api.store.patch(name, change, status=True)
    kube.api.store.patch(name, change)


def used(fleet: Fleet, name: str) -> list[str]:
    return sorted(fleet.get(name)["status"]["ipam"].get("used", {}))


def test_each_kind_creates_its_own_form(fleet: tuple[Fleet, KubeServer]) -> None:
    nodes, _ = fleet
    nodes.add(1, types=("m5.large",), ipam={"pre-allocate": 4})
    nodes.add(1, types=("m5.large",), ipam={"min-allocate": 4}, agent=Agent16)
    new, old = (nodes.get(name)["spec"] for name in nodes.names)
    instances = {instance.id: instance for instance in nodes.ec2.view().instances}
    assert instances[new["instance-id"]].subnet_id == new["eni"]["node-subnet-id"]
    assert (new["eni"]["first-interface-index"], new["ipam"]) == (0, {"pre-allocate": 4})
    assert "instance-id" not in old
    assert instances[old["eni"]["instance-id"]].vpc_id == old["eni"]["vpc-id"]
    assert {key: old["eni"][key] for key in ("first-interface-index", "min-allocate", "pre-allocate")} == {
        "first-interface-index": 1,
        "min-allocate": 4,
        "pre-allocate": 8,
    }
    before = {obj["metadata"]["uid"] for obj in nodes.objects()}
    nodes.keep(2)  # it knows both as its own
    assert {obj["metadata"]["uid"] for obj in nodes.objects()} == before


@pytest.mark.parametrize("kind", [Agent, Agent16])
def test_a_report_replaces_only_the_version_it_was_made_from(
    fleet: tuple[Fleet, KubeServer], kind: type[Agent]
) -> None:
    nodes, kube = fleet
    nodes.add(1, agent=kind)
    [name] = nodes.names
    publish(kube, name)
    stale = nodes.get(name)

    def operator(body: dict[str, Any]) -> dict[str, Any]:
        body["status"]["ipam"] = {"operator-status": {"error": "no room"}}
        return body

    kube.api.store.patch(name, operator, status=True)
    nodes.use(stale, 3)
    assert used(nodes, name) == ADDRESSES[:3]
    # What another writer had written since is still there.
    assert nodes.get(name)["status"]["ipam"]["operator-status"] == {"error": "no room"}
    requests = KubeAdmin(kube.url).record()
    assert [entry.code for entry in requests.log if entry.verb == "update"] == [409, 200]
    nodes.use(nodes.get(name), 1)
    assert used(nodes, name) == ADDRESSES[:1]
    assert KubeAdmin(kube.url).record().counts["update/status"] == 3
    nodes.use(nodes.get(name), 1)  # nothing new to report
    assert KubeAdmin(kube.url).record().counts["update/status"] == 3


def test_reports_are_rare_if_wanted(fleet: tuple[Fleet, KubeServer], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("eni_tasks.sandbox.fleet.nodes.time", SimpleNamespace(monotonic=lambda: now))
    nodes, kube = fleet
    nodes = Fleet(nodes.ec2, nodes._world, nodes._kube, report_seconds=1.0)
    nodes.add(1)
    [name] = nodes.names
    publish(kube, name)
    nodes.use(nodes.get(name), 1)
    now += 0.9
    nodes.use(nodes.get(name), 4)
    assert not nodes.report(nodes.get(name))
    assert used(nodes, name) == ADDRESSES[:1]
    now += 0.2
    assert nodes.report(nodes.get(name))
    assert used(nodes, name) == ADDRESSES[:4]


def test_a_new_object_of_the_same_name_has_a_new_agent(fleet: tuple[Fleet, KubeServer]) -> None:
    nodes, kube = fleet
    nodes.add(1)
    [name] = nodes.names
    publish(kube, name)
    obj = nodes.get(name)
    nodes.use(obj, 3)
    nodes._call("DELETE", f"/{name}", None)
    with pytest.raises(NodeGone):
        nodes.use(obj, 4)
    nodes._call("POST", "", {**obj, "metadata": {"name": name}})
    assert nodes.agent(nodes.get(name)).used == []
