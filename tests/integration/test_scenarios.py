"""Whole sequences of the vectors, until nothing changes any more, through the real services.

The worlds of 1.6 know no primaries: such an interface is one whose primary pods may use. Ids of the
vectors stand for those of the sandbox; the negative pre-allocate, which no API server takes, is read
as 1: both ask for nothing beyond min-allocate there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest
from msgspec.structs import replace
from vector_world import Vector, cases, load, required

from eni_tasks.sandbox.ec2.interfaces import associate_elastic_ip
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.ec2.records import INSTANCE_TYPES, InstanceType

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eni_tasks.sandbox.ec2.records import Instance

_GENERIC = "the layer without interfaces: there is none here (the formulas are held by unit tests)"

LEFT_OUT = {
    "scen-generic-min": _GENERIC,
    "scen-generic-min-pre": _GENERIC,
    "scen-generic-abort": _GENERIC,
    "scen-1.19-many-nodes": _GENERIC,
}

_GONE = (
    "the agent's report is shown as it is; what the pool holds stays in the object until EC2 says twice that it is "
    "gone, and also while EC2 shows no interface at all"
)
_PRIMARY = "F1: what is wanted is asked for besides the new interface's primary, which comes on top (1.6 had none)"

# Checks that we do not hold literally: by scenario and number of the check, the decision and our values.
DECIDED: dict[tuple[str, int], tuple[str, dict[str, Any]]] = {
    ("scen-1.19-instance-gone", 1): (_GONE, {"used": 2}),
    ("scen-1.6-default", 1): (_PRIMARY, {"available": 16, "secondaries": [10, 6]}),
    ("scen-1.6-min-pre", 2): (_PRIMARY, {"available": 12, "secondaries": [10, 2]}),
    ("scen-1.6-min-pre", 3): (_PRIMARY, {"available": 12, "secondaries": [10, 2]}),
    ("scen-1.6-release", 0): (_PRIMARY, {"available": 15, "secondaries": [15]}),
    ("scen-1.6-release", 2): (_PRIMARY, {"available": 23, "secondaries": [15, 8]}),
    ("scen-1.6-release", 3): (_PRIMARY, {"available": 23, "secondaries": [15, 8]}),
    ("scen-1.6-release", 4): ("F1: all beyond min-allocate + max-above-watermark is in excess", {"available": 14}),
}

VECTORS = [vector for vector in load("scenarios") if vector["id"] not in LEFT_OUT]
ONE_NODE = [vector for vector in VECTORS if "nodes" not in vector["input"]]


class Play:
    """One scenario on the sandbox."""

    def __init__(self, system: pumped.System, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.system, self.given = system, given
        self.world = system.built.world
        self.old = given["world"] == "peer-mock-1.6"
        for name, limits in given["limits"].items():
            kind = InstanceType(name, (limits["adapters"],), limits["ipv4"], 2, 8192, limits["hypervisor"])
            monkeypatch.setitem(INSTANCE_TYPES, name, kind)
        self.vpc = self.world.add_vpc("172.16.0.0/16").id
        self.subnets = {
            subnet["id"]: self.world.add_subnet(self.vpc, "a", f"172.16.{4 * number}.0/22", subnet.get("tags")).id
            for number, subnet in enumerate(given["subnets"])
        }
        self.groups = {name: self.world.add_security_group(self.vpc, name).id for name in ("sg1", "sg2")}
        for elastic_ip in given.get("elastic_ips", ()):
            other = system.ec2.add_interface(next(iter(self.subnets.values())))
            self.associate(other.id, elastic_ip["tags"])
        self.tagged = self.world.add_security_group(self.vpc, "sg-1", {"test-sg-1": "yes"}).id

    def machine(self) -> Instance:
        """Launch an instance with the vector's interfaces."""
        (instance_type,) = self.given["limits"]
        first, *others = self.given["instance_enis"]
        instance = self.system.launch(
            instance_type, subnet=self.subnets[first["subnet"]], groups=sorted(self.groups.values())
        )
        made = [self.system.interfaces(instance)[0]]
        made += [
            self.system.ec2.add_interface(
                self.subnets[each["subnet"]],
                instance_id=instance.id,
                device_index=each["number"],
                groups=sorted(self.groups.values()),
            )
            for each in others
        ]
        for interface, each in zip(made, (first, *others), strict=True):
            if each.get("public_ip"):
                self.associate(interface.id, {})
            tagged = replace(self.world.interfaces.truth.by_id[interface.id], tags=each.get("tags", {}))
            self.world.keep_interface(interface.id, tagged)
            if secondaries := each["secondaries"] - self.old:
                self.system.ec2.assign_addresses(interface.id, secondaries)
        return instance

    def associate(self, interface_id: str, tags: dict[str, str]) -> None:
        """Give an interface a public address, as a person does."""
        elastic_ip = self.system.ec2.allocate_elastic_ip(tags)
        with self.world.lock:
            associate_elastic_ip(self.world, allocation_id=elastic_ip.id, interface_id=interface_id)

    def leave(self, subnet: str, count: int) -> None:
        """Leave a subnet so many free addresses."""
        pool = self.world.pools[self.subnets[subnet]]
        if pool.free > count:
            pool.take(pool.free - count)

    def open(self) -> None:
        """Leave each subnet what the vector gives it."""
        for subnet in self.given["subnets"]:
            self.leave(subnet["id"], subnet["available"])

    def publish(self, instance: Instance, node: dict[str, Any], name: str = "node") -> None:
        """Create the object as the vector's agent does."""
        spec = {key: dict(value) if isinstance(value, dict) else value for key, value in node["spec"].items()}
        eni, ipam = spec["eni"], spec.setdefault("ipam", {})
        place = eni if "instance-id" in eni else spec
        place["instance-id"] = instance.id
        eni |= {"vpc-id": self.vpc, "availability-zone": instance.availability_zone}
        if "node-subnet-id" in eni:
            eni["node-subnet-id"] = self.subnets[eni["node-subnet-id"]]
        if self.old:
            eni["use-primary-address"] = True
        ipam |= {key: 1 for key, value in ipam.items() if value == -1}
        head = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}}
        self.system.kube.store.create({**head, "spec": spec})

    def step(self, step: dict[str, Any], instance: Instance) -> None:
        """Do one step."""
        match step["do"]:
            case "settle":
                self.system.settle()
            case "used":
                if step["kind"] == "pool":
                    self.system.settle()
                self.system.use(step["count"], phantom=step["kind"] == "phantom")
            case "spec":
                self.system.change("node", lambda body: body["spec"]["ipam"].update(step["set"]))
            case "subnet_available":
                self.leave(step["subnet"], step["available"])
                self.system.later(1)
                self.system.resync()
            case "release_cycle":
                for _ in range(10):
                    self.system.later(60)
                    self.system.resync()
                    self.system.change("node", answer_marks, status=True)
            case "instance_gone":
                self.system.ec2.terminate_instance(instance.id)
                for _ in range(3):
                    self.system.later(60)
                    self.system.resync()

    def shown(self, instance: Instance, check: dict[str, Any]) -> dict[str, Any]:
        """What the check looks at, as it is."""
        self.system.settle()
        view, obj = self.system.status(), self.system.object()
        first = obj["spec"]["eni"].get("first-interface-index", 0)
        excluded = obj["spec"]["eni"].get("exclude-interface-tags", {})
        interfaces = self.system.interfaces(instance)
        eligible = [
            each
            for each in interfaces
            if each.attachment
            and each.attachment.device_index >= first
            and not (excluded and excluded.items() <= each.tags.items())
        ]
        names = {identifier: name for name, identifier in self.subnets.items()}
        found = {
            "available": view.published,
            "used": len(obj["status"]["ipam"].get("used", {})),
            "needed": view.needed,
            "excess": view.excess,
            "enis": len(interfaces),
            "secondaries": sorted(
                (len(each.addresses) + 16 * len(each.prefixes) + self.old for each in eligible), reverse=True
            ),
            "subnets": [names[each.subnet_id] for each in interfaces],
        }
        return {key: found[key] for key in check if key != "note"}


def answer_marks(body: dict[str, Any]) -> None:
    """The agent's answers; none of the pool's addresses that are marked is used."""
    ipam, pool = body["status"]["ipam"], body["spec"]["ipam"]["pool"]
    answers = {"marked-for-release": "ready-for-release"}
    shown = {address: answers.get(state, state) for address, state in ipam.get("release-ips", {}).items()}
    ipam["release-ips"] = {a: state for a, state in shown.items() if a in pool or state != "released"}


@pytest.fixture
def vector_system(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vector: Vector
) -> Iterator[pumped.System]:
    """A system with the vector's settings; agents of 1.6 can't be asked, and are forced there."""
    operator = vector["input"].get("operator", {})
    on, prefixes = operator.get("release_excess_ips", False), operator.get("prefix_delegation", False)
    settings = {"release_excess": on, "release_16": on, "prefix_delegation": prefixes}
    with pumped.running(redis_url, tmp_path, monkeypatch, **settings) as system:
        yield system


@pytest.mark.parametrize("vector", cases([vector for vector in ONE_NODE if "steps" in vector["input"]]))
def test_a_scenario_comes_to_its_end(
    vector_system: pumped.System, monkeypatch: pytest.MonkeyPatch, vector: Vector
) -> None:
    system = vector_system
    play = Play(system, vector["input"], monkeypatch)
    instance = play.machine()
    play.open()
    play.publish(instance, vector["input"]["cilium_node"])
    checks = enumerate(required(vector)["checks"])
    for step in vector["input"]["steps"]:
        if step["do"] == "check":
            number, check = next(checks)
            _, ours = DECIDED.get((vector["id"], number), ("", {}))
            expected = {key: value for key, value in (check | ours).items() if key != "note"}
            assert play.shown(instance, check) == expected, f"check {number}"
        else:
            play.step(step, instance)
    if "assigned_static_ip" in required(vector):
        shown = system.object()["status"]["ipam"]["assigned-static-ip"]
        assert shown == system.ec2.view().elastic_ips[0].public_ip
        assert len(system.ec2.calls("AssociateAddress")) == required(vector)["associate_calls"]
    if vector["id"] == "scen-1.19-sgtags":
        assert system.interfaces(instance)[1].groups == (play.tagged,)
    assert system.ec2.leftovers({"io.cilium/cluster-name": system.cluster}) == []
    assert system.ec2.violations() == []


@pytest.mark.parametrize("vector", cases([vector for vector in ONE_NODE if "ec2_errors" in vector["input"]]))
def test_a_stopped_instance(system: pumped.System, monkeypatch: pytest.MonkeyPatch, vector: Vector) -> None:
    play = Play(system, vector["input"], monkeypatch)
    instance = play.machine()
    play.open()
    play.publish(instance, vector["input"]["cilium_node"])
    for action, errors in vector["input"]["ec2_errors"].items():
        faults = [Fault(action=action, code="IncorrectState", message=error["message"], times=None) for error in errors]
        system.ec2.add_faults(faults)
    system.settle()
    view = system.status()
    assert required(vector) == {
        "marked_not_running": view.reason == "instance-not-running",
        "available": view.available,
        "used": view.used,
        "unattached_left_over": len(system.ec2.leftovers({"io.cilium/cluster-name": system.cluster})),
        "counted_as_failure": "failures" in system.memory(),
    }


@pytest.fixture
def unlimited(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pumped.System]:
    """A system that waits for no token."""
    with pumped.running(redis_url, tmp_path, monkeypatch, rate_limits={}) as system:
        yield system


def test_a_hundred_nodes(unlimited: pumped.System, monkeypatch: pytest.MonkeyPatch) -> None:
    system = unlimited
    (vector,) = [vector for vector in VECTORS if vector["id"] == "scen-1.6-many-nodes"]
    given = vector["input"]
    play = Play(system, given, monkeypatch)
    (instance_type,) = given["limits"]
    eni = {"instance-type": instance_type, "first-interface-index": given["first_interface_index"], **given["spec"]}
    for number in range(given["nodes"]):
        instance = play.machine()
        play.publish(instance, {"spec": {"eni": {"instance-id": "i-1", **eni}}}, f"node-{number}")
    play.open()
    system.settle()
    views = [system.status(f"node-{number}") for number in range(given["nodes"])]
    expected = required(vector)
    figures = {(view.available, view.used, view.needed) for view in views}
    assert figures == {tuple(expected["per_node"][name] for name in ("available", "used", "needed"))}
    assert sum(view.available for view in views) == expected["metrics"]["ips available"]
    assert system.clean()


def test_every_scenario_is_played_or_left_out_for_a_reason() -> None:
    known = {vector["id"] for vector in load("scenarios")}
    played = {vector["id"] for vector in VECTORS}
    assert set(LEFT_OUT) | played == known
    assert {name for name, _ in DECIDED} <= played
