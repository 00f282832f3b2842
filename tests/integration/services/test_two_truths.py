"""What contradicts itself: two objects that name one instance, and objects that went back in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    import pytest
    from pumped import System


# -- two nodes, one instance ---------------------------------------------------------------------
def test_of_two_nodes_that_name_an_instance_only_the_older_is_served(system: System) -> None:
    instance = system.add_node("older")
    system.settle()
    pool = system.pool("older")
    assert len(pool) == 8
    system.fresh()
    system.add_node("impostor", instance=instance)
    system.settle(within_seconds=120)
    system.resync()
    assert system.mutations() == {}
    assert system.pool("older") == pool
    assert system.pool("impostor") == {}
    assert system.object("impostor")["status"].get("eni", {}).get("enis", {}) == {}
    status = system.status("impostor")
    assert (status.reason, status.ready) == ("instance-of-another-node", False)
    assert "older" in system.object("impostor")["status"]["ipam"]["operator-status"]["error"]
    assert system.services.state.nodes.contested() == {instance.id: ["older", "impostor"]}
    # The older one goes on as if nothing had happened.
    system.use(4, "older")
    system.settle(within_seconds=10)
    assert len(system.pool("older")) == 12
    assert system.status("older").ready
    assert system.clean()


def test_the_reason_is_shown_before_reads_are_accepted(system: System) -> None:
    instance = system.add_node("older")
    system.settle()
    pool = system.pool("older")
    shared = system.services.state.coordination
    before = shared.begin_generation()
    system.redis.delete(system._keys.generation)
    shared.begin_generation(before, quiet_seconds=60)
    system.add_node("impostor", instance=instance)
    system.change("impostor", lambda body: body["spec"]["ipam"].update({"pool": {"10.0.0.9": {"resource": "eni-1"}}}))
    system.settle(within_seconds=10)
    assert system.status("older").reason == "instance-not-read"
    assert "older" in system.object("impostor")["status"]["ipam"]["operator-status"]["error"]
    assert system.pool("impostor") == {"10.0.0.9": "eni-1"}, "nothing is withdrawn before a read"
    system.settle(within_seconds=120)
    assert system.pool("impostor") == {}
    assert system.pool("older") == pool


def test_the_younger_is_served_once_the_older_is_gone(system: System) -> None:
    instance = system.add_node("older")
    system.add_node("younger", instance=instance)
    system.settle(within_seconds=10)
    system.kube.store.delete("older")
    system.settle(within_seconds=10)
    system.resync()
    assert system.services.state.nodes.contested() == {}
    assert len(system.pool("younger")) == 8
    assert system.status("younger").ready
    assert system.clean()


def test_a_node_that_begins_to_name_anothers_instance_loses_what_it_showed(system: System) -> None:
    instance = system.add_node("victim")
    system.add_node("typo")
    system.settle()
    system.change("typo", lambda body: body["spec"].update({"instance-id": instance.id}))
    system.settle(within_seconds=30)
    system.resync()
    assert system.pool("typo") == {}
    assert len(system.pool("victim")) == 8


def test_an_older_node_takes_no_instance_from_a_younger_one_that_has_it(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as long_ago:
        long_ago.setattr("eni_tasks.sandbox.kube.store._now", lambda: "2020-01-01T00:00:00Z")
        system.add_node("typo")
    instance = system.add_node("victim")
    system.settle(within_seconds=5)
    used = system.use(4, "victim")
    system.settle(within_seconds=5)
    pool = system.pool("victim")
    assert len(pool) == 12
    system.change("typo", lambda body: body["spec"].update({"instance-id": instance.id}))
    system.settle(within_seconds=30)
    system.resync()
    assert system.services.state.nodes.contested() == {instance.id: ["victim", "typo"]}
    assert (system.pool("victim"), system.status("victim").ready) == (pool, True)
    assert (system.pool("typo"), system.status("typo").reason) == ({}, "instance-of-another-node")
    assert set(used) < set(pool)
    # The objects show who had the instance, when Redis no longer knows.
    version = system.object("victim")["metadata"]["resourceVersion"]
    system.empty_redis()
    system.later(60)
    system.settle(within_seconds=60)
    system.resync()
    assert system.services.state.nodes.contested() == {instance.id: ["victim", "typo"]}
    assert (system.pool("victim"), system.pool("typo")) == (pool, {})
    assert system.object("victim")["metadata"]["resourceVersion"] == version  # no write, so no address ever left


# -- objects that went back ----------------------------------------------------------------------
def test_a_restored_api_server_is_the_new_truth(system: System) -> None:
    for name in ("one", "two"):
        system.add_node(name)
    system.settle()
    system.kube.store.back_up()
    system.add_node("three")
    for name in ("one", "two"):
        system.use(4, name)
    system.settle(within_seconds=10)
    assert len(system.pool("one")) == 12
    system.kube.store.restore()
    system.settle(within_seconds=60)
    assert {name: len(system.pool(name)) for name in ("one", "two")} == {"one": 12, "two": 12}
    assert system.services.state.nodes.object(NodeName("three")) is None
    assert all(system.status(name).ready for name in ("one", "two"))


def test_an_object_of_an_earlier_life_is_taken_in_although_no_list_looks_older(system: System) -> None:
    """By the time that a list is made, versions have passed what they were before the restore."""
    for name in ("one", "two"):
        system.add_node(name)
    system.settle()
    system.kube.store.back_up()
    body = system.object("one")
    system.kube.store.delete("one")
    system.kube.store.create({key: body[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "one"}})
    system.settle(within_seconds=10)
    system.kube.store.restore()
    for count in (1, 2) * 10:
        system.use(count, "two")
    system.settle(within_seconds=60)
    (interface,) = (each for each in system.ec2.view().interfaces if each.instance_id == body["spec"]["instance-id"])
    system.ec2.assign_addresses(interface.id, 1)  # now the object that is stored needs a write
    system.later(60)
    system.resync()
    system.settle(within_seconds=60)
    assert len(system.pool("one")) == 9
    assert system.status("one").ready
