"""Elastic IPs for nodes that ask for one by tags: on the first interface, beside the pool, each for one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest
from pumped import System

from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAGS = {"pool": "egress"}
ASKS = {"static-ip-tags": TAGS}


@pytest.fixture
def system(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    with pumped.running(redis_url, tmp_path, monkeypatch, static_addresses=True) as system:
        yield system


def assigned(system: System, name: str = "node") -> str | None:
    return system.object(name)["status"].get("ipam", {}).get("assigned-static-ip")


def error(system: System, name: str = "node") -> str:
    return system.object(name)["status"]["ipam"].get("operator-status", {}).get("error", "")


def associated(system: System) -> dict[str, str]:
    """Elastic IP → private address."""
    found = system.ec2.view().elastic_ips
    return {each.public_ip: each.association.private_address for each in found if each.association}


def calls(system: System, action: str) -> list[Any]:
    return system.ec2.calls(action)


@pytest.mark.parametrize("first_index", [0, 1], ids=["for-pods", "not-for-pods"])
def test_a_free_one_with_all_tags_goes_to_the_first_interface(system: System, first_index: int) -> None:
    system.ec2.allocate_elastic_ip({"pool": "other"})
    free = system.ec2.allocate_elastic_ip({**TAGS, "more": "tags"})
    instance = system.add_node(eni={"first-interface-index": first_index}, ipam=ASKS)
    system.settle()
    assert associated(system) == {free.public_ip: instance.private_address}
    assert (assigned(system), len(system.pool())) == (free.public_ip, 8)
    first = system.object()["status"]["eni"]["enis"][system.interfaces(instance)[0].id]
    assert first["public-ip"] == free.public_ip
    assert (system.status().ready, error(system)) == (True, "")
    (call,) = calls(system, "AssociateAddress")
    assert call.parameters["AllowReassociation"] == "false"
    system.fresh()
    system.resync()
    assert (system.mutations(), system.writes(), calls(system, "DescribeAddresses")) == ({}, {}, [])
    assert system.clean()


def test_without_a_free_one_the_pool_is_served_and_the_object_says_why(system: System) -> None:
    taken = system.ec2.allocate_elastic_ip(TAGS)
    system.add_node("first", ipam=ASKS)
    system.settle()
    system.add_node(ipam=ASKS)
    system.settle()
    assert len(system.pool()) == 8
    assert "No Elastic IP with the tags pool=egress is free for node" in error(system)
    assert (assigned(system), assigned(system, "first")) == (None, taken.public_ip)
    status = system.status()
    assert not status.ready
    assert error(system) == status.trouble == status.explanation[-1]
    # It is asked about again and again, ever more rarely.
    system.fresh()
    for _ in range(30):
        system.later(60)
        system.resync()
    assert 4 <= len(calls(system, "DescribeAddresses")) <= 8
    assert system.mutations() == {}
    free = system.ec2.allocate_elastic_ip(TAGS)
    for _ in range(10):
        system.later(60)
        system.resync()
    assert (assigned(system), error(system), system.status().ready) == (free.public_ip, "", True)


def test_other_tags_are_tried_at_once(system: System) -> None:
    free = system.ec2.allocate_elastic_ip({"pool": "right"})
    system.add_node(ipam=ASKS)
    system.settle()
    assert error(system)
    system.change("node", lambda body: body["spec"]["ipam"].update({"static-ip-tags": {"pool": "right"}}))
    system.settle()
    assert (assigned(system), error(system)) == (free.public_ip, "")


def test_a_public_address_that_is_there_counts(system: System) -> None:
    free = system.ec2.allocate_elastic_ip(TAGS)
    instance = system.launch()
    first = system.interfaces(instance)[0]
    there = system.ec2.allocate_elastic_ip({"of": "people"})
    associate(system, there.id, first.id)
    system.add_node(instance=instance, ipam=ASKS)
    system.settle()
    assert assigned(system) == there.public_ip
    assert free.public_ip not in associated(system)
    assert calls(system, "DescribeAddresses") == []


def test_one_that_is_taken_away_is_replaced(system: System) -> None:
    first = system.ec2.allocate_elastic_ip(TAGS)
    instance = system.add_node(ipam=ASKS)
    system.settle()
    assert assigned(system) == first.public_ip
    other = system.ec2.add_interface(system.built.pod_subnets["a"])
    associate(system, first.id, other.id, again=True)
    system.later(60)
    system.resync()
    assert assigned(system) is None
    second = system.ec2.allocate_elastic_ip(TAGS)
    system.later(60)
    system.resync()
    assert assigned(system) == second.public_ip
    assert associated(system)[second.public_ip] == instance.private_address


def associate(system: System, allocation_id: str, interface_id: str, *, again: bool = False) -> None:
    from eni_tasks.sandbox.ec2 import interfaces  # noqa: PLC0415

    world = system.built.world
    with world.lock:
        interfaces.associate_elastic_ip(
            world, allocation_id=allocation_id, interface_id=interface_id, allow_reassociation=again
        )


def test_many_nodes_take_one_each(system: System) -> None:
    """All of them see the same free ones, since EC2's reads are late."""
    count = 6
    system.ec2.set_knobs(read_lag_seconds={"DescribeAddresses": 5.0})
    wanted = {system.ec2.allocate_elastic_ip(TAGS).public_ip for _ in range(count)}
    system.later(6)
    for number in range(count):
        system.add_node(f"node-{number}", ipam=ASKS)
    system.settle(within_seconds=60)
    for _ in range(10):
        system.later(60)
        system.resync()
    got = [assigned(system, f"node-{number}") for number in range(count)]
    assert sorted(filter(None, got)) == sorted(wanted)
    assert len(associated(system)) == count
    assert sum(call.effect for call in calls(system, "AssociateAddress")) == count
    assert system.clean()


@pytest.mark.parametrize("action", ["DescribeAddresses", "AssociateAddress"])
@pytest.mark.parametrize("code", ["UnauthorizedOperation", "RequestLimitExceeded", "InvalidParameterValue"])
def test_a_refusal_costs_no_addresses(system: System, action: str, code: str) -> None:
    free = system.ec2.allocate_elastic_ip(TAGS)
    system.ec2.add_faults([Fault(action=action, code=code, times=None)])
    system.add_node(ipam=ASKS)
    system.settle()
    assert len(system.pool()) == 8
    assert code in error(system)
    assert action in error(system)
    system.ec2.clear_faults()
    for _ in range(5):
        system.later(60)
        system.resync()
    assert (assigned(system), error(system)) == (free.public_ip, "")


def test_after_an_unclear_answer_the_interface_is_read(system: System) -> None:
    for _ in range(3):
        system.ec2.allocate_elastic_ip(TAGS)
    system.ec2.add_faults([Fault(action="AssociateAddress", drop=True, after=True)])
    system.add_node(ipam=ASKS)
    system.settle(within_seconds=60)
    assert len(system.pool()) == 8
    assert [assigned(system)] == list(associated(system))
    assert len(calls(system, "AssociateAddress")) == 1
    assert error(system) == ""


def test_without_the_setting_no_right_is_used_and_the_object_says_so(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch) as system:
        system.ec2.allocate_elastic_ip(TAGS)
        system.add_node(ipam=ASKS)
        system.settle()
        assert len(system.pool()) == 8
        assert "ENI_TASKS_STATIC_ADDRESSES" in error(system)
        assert (calls(system, "DescribeAddresses"), calls(system, "AssociateAddress")) == ([], [])
        system.change("node", lambda body: body["spec"]["ipam"].pop("static-ip-tags"))
        system.later(60)
        system.resync()
        assert (error(system), system.status().ready) == ("", True)
