"""What the settings and an object leave out: subnets, instances, interfaces; nothing that is left out disappears."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pumped
import pytest
from msgspec.structs import replace
from pumped import System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def running(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    @contextmanager
    def start(**settings: Any) -> Iterator[System]:
        with pumped.running(redis_url, tmp_path, monkeypatch, **settings) as system:
            yield system

    return start


def entries(system: System) -> dict[str, Any]:
    found: dict[str, Any] = system.object()["status"]["eni"]["enis"]
    return found


def test_a_subnet_filter_hides_no_interface_of_a_node(running: Callable[..., Any]) -> None:
    with running(subnet_tags={"purpose": "pods"}) as system:
        instance = system.add_node()  # in a subnet that is filtered out
        system.settle()
        first, second = system.interfaces(instance)
        assert (first.addresses, second.subnet_id) == ((), system.built.pod_subnets["a"])
        assert set(entries(system)) == {first.id, second.id}
        assert (len(system.pool()), set(system.pool().values())) == (8, {second.id})
        for _ in range(3):
            system.later(60)
            system.resync()
        assert set(entries(system)) == {first.id, second.id}
        assert (system.status().ready, system.clean()) == (True, True)


@pytest.mark.parametrize("setting", [{"subnet_ids": ("subnet-none",)}, {"subnet_tags": {"purpose": "none"}}])
def test_a_subnet_filter_that_matches_nothing_is_a_reason_and_takes_nothing_away(
    running: Callable[..., Any], setting: dict[str, Any]
) -> None:
    with running(**setting) as system:
        instance = system.launch()
        interface = system.interfaces(instance)[0]
        system.ec2.assign_addresses(interface.id, 3)
        system.add_node(instance=instance)
        system.settle(within_seconds=30)
        assert system.mutations() == {}
        assert (len(system.pool()), set(entries(system))) == (3, {interface.id})
        status = system.status()
        assert (status.reason, status.ready) == ("no-subnet-with-room", False)
        assert "and the filters" in system.object()["status"]["ipam"]["operator-status"]["error"]


def test_only_instances_with_the_tags_are_served(running: Callable[..., Any]) -> None:
    with running(instance_tags={"ipam": "eni-tasks"}) as system:
        served = system.add_node("served", tags={"ipam": "eni-tasks", "Name": "a"})
        other = system.add_node("other", tags={"ipam": "other"})
        system.settle()
        assert len(system.pool("served")) == 8
        assert (system.pool("other"), "status" in system.object("other")) == ({}, False)
        assert system.interfaces(other)[0].addresses == ()
        # One that loses the tags keeps what it has, and gets nothing more.
        record = system.built.world.instances.truth.by_id[served.id]
        system.built.world.keep_instance(served.id, replace(record, tags={}))
        pool = system.pool("served")
        for _ in range(8):
            system.later(60)
            system.resync()
        system.use(5, "served")
        system.fresh()
        system.settle()
        assert (system.mutations(), system.pool("served")) == ({}, pool)


def test_an_excluded_interface_is_shown_and_takes_its_slot(running: Callable[..., Any]) -> None:
    with running() as system:
        instance = system.launch()
        tags = {"cilium": "no"}
        kept = system.ec2.add_interface(
            system.built.pod_subnets["a"], instance_id=instance.id, device_index=1, secondary_count=2, tags=tags
        )
        system.add_node(instance=instance, eni={"exclude-interface-tags": tags}, ipam={"min-allocate": 100})
        system.settle()
        first, excluded, third = system.interfaces(instance)
        assert set(entries(system)) == {first.id, excluded.id, third.id}
        assert excluded.addresses == kept.addresses
        assert entries(system)[excluded.id]["addresses"] == list(excluded.addresses)
        assert set(system.pool().values()) == {first.id, third.id}
        status = system.status()
        assert (status.capacity, status.available, status.reason) == (18, 18, "at-capacity")


@pytest.mark.parametrize(
    ("ipam", "held"),
    [
        ({"max-allocate": 5}, 5),
        ({"max-allocate": 12, "min-allocate": 20}, 12),
        ({"max-allocate": 12, "pre-allocate": 10, "max-above-watermark": 9}, 12),
        ({"max-allocate": 100, "min-allocate": 100}, 27),
    ],
    ids=["below-pre", "below-min", "with-above", "beyond-capacity"],
)
def test_max_allocate_bounds_what_is_held(running: Callable[..., Any], ipam: dict[str, int], held: int) -> None:
    with running() as system:
        system.add_node(ipam=ipam)
        system.settle()
        assert len(system.pool()) == held
        system.fresh()
        system.resync()
        assert system.mutations() == {}
        assert system.clean()


def test_primaries_for_pods_count_as_capacity(running: Callable[..., Any]) -> None:
    with running() as system:
        instance = system.add_node(eni={"use-primary-address": True}, ipam={"min-allocate": 100})
        system.settle()
        assert (len(system.pool()), system.status().capacity) == (30, 30)
        assert {each.primary_address for each in system.interfaces(instance)} <= set(system.pool())
