"""Objects that go, come back, are half-filled or nonsense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import WorkKind

if TYPE_CHECKING:
    from pumped import System

NODE = NodeName("node")


# -- gone --------------------------------------------------------------------------------------
def test_nothing_is_done_for_a_node_that_is_gone(system: System) -> None:
    """B07, B56: three messages are under way when it goes."""
    instance = system.add_node()
    system.settle()
    system.use(3)
    system.ingest()
    system.services.work.enqueue(WorkKind.PUBLISH, [(NODE, 0)])
    system.services.state.reads.request([NODE])
    system.fresh()
    uid = system.object()["metadata"]["uid"]
    system.kube.store.delete("node")
    system.services.ingest.removed(NODE, uid)
    system.pump()
    system.settle(within_seconds=60)
    assert system.mutations() == {}
    assert system.writes() == {}
    assert system.keys_of("node") == []
    assert system.keys_of(instance.id) == []


def test_a_node_deleted_while_no_watcher_ran(system: System) -> None:
    instance = system.add_node()
    system.add_node("other")
    system.settle()
    system.kube.store.delete("node")
    system.settle(within_seconds=60)
    assert system.keys_of("node") == []
    assert system.keys_of(instance.id) == []
    assert system.status("other").ready


def test_an_object_that_went_before_the_write(system: System) -> None:
    """B56: 404 is final."""
    system.add_node()
    system.settle_reads()
    uid = system.object()["metadata"]["uid"]
    system.kube.store.delete("node")
    system.services.maintain.run(NODE)
    assert "404" in system.services.publish.run(NODE)["skipped"]
    system.services.ingest.removed(NODE, uid)
    system.pump()
    assert system.writes() == {"status": 1}
    assert system.keys_of("node") == []


def test_a_node_that_is_being_deleted_gets_nothing_more(system: System) -> None:
    system.add_node(metadata={"finalizers": ["tests/keep"]})
    system.settle()
    system.kube.store.delete("node")
    system.fresh()
    system.use(5)
    system.settle(within_seconds=60)
    assert system.mutations() == {}
    assert system.writes() == {}
    assert system.status().reason == "node-is-being-deleted"


def test_a_node_that_is_to_be_ignored(system: System) -> None:
    system.add_node(metadata={"annotations": {"ipam.cilium.io/ignore": "true"}})
    system.settle(within_seconds=60)
    system.resync()
    assert system.mutations() == {}
    assert system.writes() == {}
    assert "eni" not in system.object().get("status", {})


# -- another machine under the same name -----------------------------------------------------------
@pytest.mark.parametrize("noticed", [True, False], ids=["deletion-seen", "deletion-missed"])
def test_a_node_comes_back_with_another_machine(system: System, *, noticed: bool) -> None:
    old = system.add_node(ipam={"pre-allocate": 12})
    system.settle()
    system.kube.store.delete("node")
    system.ec2.terminate_instance(old.id)
    if noticed:
        system.settle()
    system.fresh()
    new = system.add_node(instance_type="c5.xlarge", ipam={"pre-allocate": 12})
    system.settle(within_seconds=10)
    assert system.mutations() == {"Assign": 1}
    assert set(system.pool().values()) == {each.id for each in system.interfaces(new)}
    assert set(system.object()["status"]["eni"]["enis"]) == {each.id for each in system.interfaces(new)}
    assert system.keys_of(old.id) == []
    assert system.clean()


def test_a_node_comes_back_smaller_with_its_interfaces(system: System) -> None:
    """B52: the same instance, another type; its limits are those of the new type."""
    instance = system.add_node(instance_type="m5.xlarge", ipam={"pre-allocate": 20})
    system.settle()
    assert [len(each.addresses) for each in system.interfaces(instance)] == [14, 6]
    system.kube.store.delete("node")
    system.settle()
    # The console does not let one shrink an instance that holds more than the new type takes.
    system.ec2.stop_instance(instance.id)
    for each in system.interfaces(instance)[1:]:
        system.ec2.remove_interface(each.id)
    first = system.interfaces(instance)[0]
    _unassign(system, first.id, first.addresses[4:])
    system.ec2.change_instance_type(instance.id, "m5.large")
    system.ec2.start_instance(instance.id)
    system.fresh()
    system.add_node(instance=instance, instance_type="m5.large", ipam={"pre-allocate": 60})
    system.settle(within_seconds=10)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [9, 9, 9]
    assert system.reads()["DescribeNetworkInterfaces"] == 1
    assert system.status().reason == "at-capacity"
    assert system.clean()


def _unassign(system: System, interface: str, addresses: tuple[str, ...]) -> None:
    from eni_tasks.sandbox.ec2 import interfaces  # noqa: PLC0415 - the sandbox's own way

    with system.built.world.lock:
        interfaces.unassign_addresses(system.built.world, interface_id=interface, addresses=addresses)


def test_the_machine_changes_in_the_middle_of_a_new_interface(system: System) -> None:
    """The interface was made for the old one: it is deleted, not attached to either."""
    system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    new = system.launch()
    real = system.services.ec2.create_interface

    def slow(**parameters: Any) -> Any:
        made = real(**parameters)
        system.services.ec2.create_interface = real
        system.change("node", lambda body: body["spec"].update({"instance-id": new.id}))
        system.ingest()
        return made

    system.services.ec2.create_interface = slow
    system.settle(within_seconds=120)
    assert [len(each.addresses) for each in system.interfaces(new)] == [0, 8]
    assert set(system.pool().values()) == {system.interfaces(new)[1].id}
    assert system.status().ready
    assert system.ec2.violations() == []


# -- nonsense ----------------------------------------------------------------------------------
@pytest.mark.parametrize("eni", [{}, {"instance-id": ""}], ids=["later-place", "both-places"])
def test_an_empty_instance_id_asks_and_writes_nothing(system: System, eni: dict[str, str]) -> None:
    """B20: there are forty interfaces in the VPC that it must not be taken for."""
    for _ in range(40):
        system.ec2.add_interface(system.built.node_subnets["a"])
    instance = system.launch()
    pool = {"10.0.9.1": {"resource": "eni-1"}}
    system.add_node(instance=instance, ipam={"pool": pool}, eni=eni, top={"instance-id": ""})
    before = system.object()
    system.settle(within_seconds=120)
    system.resync()
    reads = system.reads()
    assert reads.pop("DescribeNetworkInterfaces", 0) == 0
    assert system.mutations() == {}
    assert system.object() == before
    assert system.status().reason == "no-instance-id"
    system.change("node", lambda body: body["spec"].update({"instance-id": instance.id}))
    system.settle(within_seconds=10)
    assert system.status().ready


@pytest.mark.parametrize(
    "spec",
    [
        {"top": {"instance-id": "*"}},
        {"top": {"instance-id": "i-0123456789abcdef0"}},
        {"top": {"instance-id": "i-" + "0" * 200}},
        {"eni": {"vpc-id": "vpc-" + "0" * 200}},
        {"ipam": {"pre-allocate": 10**12}},
        {"ipam": {"min-allocate": 2**31 - 1}},
        {"eni": {"first-interface-index": 10**9}},
        {"eni": {"instance-type": ""}},
        {"eni": {"vpc-id": "vpc-nowhere"}},
        {"eni": {"subnet-ids": ["subnet-nowhere"], "first-interface-index": 1}},
        {"eni": {"security-groups": ["sg-nowhere"], "first-interface-index": 1}},
    ],
    ids=lambda spec: "-".join(str(value)[:20] for part in spec.values() for value in part),
)
def test_a_strange_object_troubles_only_itself(system: System, spec: dict[str, Any]) -> None:
    system.add_node("strange", **spec)
    system.add_node("healthy")
    system.settle(within_seconds=60)
    assert system.status("healthy").ready
    strange = system.status("strange")
    assert strange.reason
    assert strange.explanation
    assert sum(system.mutations().values()) <= 12
    assert system.clean()


@pytest.mark.parametrize("noticed_by", ["watch", "conflict"])
def test_an_object_that_becomes_nonsense_is_left_alone_until_it_is_right_again(system: System, noticed_by: str) -> None:
    """Its last good state is not acted on, it counts as not understood, and it is not taken for deleted."""
    system.add_node()
    system.add_node("other")
    system.settle()
    used = system.use(4)
    if noticed_by == "watch":
        spoil(system)
    else:
        system.ingest()
        publisher = system.services.publish._nodes
        real = publisher.patch_status

        def late(name: NodeName, operations: Any) -> Any:
            if name == NODE:
                publisher.patch_status = real
                spoil(system)
            return real(name, operations)

        publisher.patch_status = late
    system.fresh()
    system.settle(within_seconds=60)
    assert system.status().reason == "object-not-understood"
    assert "`$.spec.ipam.min-allocate`" in system.status().explanation[-1]
    assert system.writes().get("spec", 0) == 0
    assert (sum(system.mutations().values()) > 0) == (noticed_by != "watch")
    assert len(system.pool()) == 8
    assert system.status("other").ready
    system.change("node", lambda body: body["spec"]["ipam"].pop("min-allocate"))
    system.settle(within_seconds=60)
    assert system.status().ready
    assert len(system.pool()) == 12
    assert set(used) <= set(system.pool())
    assert system.clean()


def spoil(system: System) -> None:
    system.change("node", lambda body: body["spec"]["ipam"].update({"min-allocate": 2**40}))


def test_an_entry_in_redis_that_is_not_understood_affects_only_its_node(system: System) -> None:
    system.add_node()
    system.add_node("other")
    system.settle()
    system.redis.hset(system.services.state.nodes._keys.nodes, NODE, b"\xff{")
    system.resync()
    assert system.status("other").ready
    assert "node: its entry in Redis can't be decoded" in system.status().explanation[-1]
    used = system.use(1)
    system.settle(within_seconds=60)
    assert set(used) <= set(system.pool())
    assert len(system.pool()) == 9
    assert system.clean()


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("spec", {"pools": {"allocated": [{"pool": "default", "cidrs": ["10.0.0.1/32"]}]}}),
        ("status", {"release-ips": {"10.0.0.9": "marked-for-release"}}),
        ("status", {"assigned-static-ip": "198.51.100.7"}),
        ("metadata", {"labels": {"a": "b"}}),
    ],
    ids=lambda part: part if isinstance(part, str) else next(iter(part)),
)
def test_a_change_to_what_nothing_acts_on_enqueues_nothing(system: System, part: str, change: dict[str, Any]) -> None:
    system.add_node()
    system.settle()
    system.fresh()

    def apply(body: dict[str, Any]) -> None:
        below = body["metadata"] if part == "metadata" else body[part]["ipam"]
        below.update(change)

    system.change("node", apply, status=part == "status")
    system.ingest()
    assert list(system.messages.waiting) == []
    system.settle()
    assert (system.mutations(), system.reads(), system.writes()) == ({}, {}, {})
