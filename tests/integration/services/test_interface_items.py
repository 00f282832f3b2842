"""What `status NODE` says of each interface and address: used, free, not shown, not for pods, and what still fits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from eni_tasks.model.network import NodeName, SubnetId
from eni_tasks.services.status import InterfaceStatus, ItemState

if TYPE_CHECKING:
    from pumped import System

NODE = NodeName("node")


def interfaces(system: System) -> tuple[InterfaceStatus, ...]:
    return system.services.status.node(NODE).interfaces


def states(interface: InterfaceStatus) -> Counter[ItemState]:
    return Counter(item.state for item in interface.items)


def test_used_and_free_and_what_still_fits(system: System) -> None:
    system.add_node()
    system.settle()
    used = system.use(3)
    system.ingest()
    (first,) = interfaces(system)
    assert states(first) == {ItemState.USED: 3, ItemState.FREE: 5}
    assert {item.label for item in first.items if item.state is ItemState.USED} == set(used)
    assert first.room == 1  # of an m5.large's ten, the primary and eight are taken
    assert first.subnet_room > 0
    system.settle()
    first, second = interfaces(system)
    assert (first.room, second.room) == (0, 7)
    system.services.state.network.cool_down(SubnetId(second.subnet), 60)
    second = interfaces(system)[1]
    assert (second.room, second.subnet_room, second.subnet_cooling_down) == (7, 0, True)


def test_what_the_object_does_not_show_yet(system: System) -> None:
    system.add_node()
    system.settle_reads()
    system.services.maintain.run(NODE)
    (first,) = interfaces(system)
    assert states(first) == {ItemState.NOT_SHOWN: 8}
    system.settle()
    assert states(interfaces(system)[0]) == {ItemState.FREE: 8}


def test_an_interface_that_is_not_for_pods(system: System) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    system.ec2.assign_addresses(system.interfaces(instance)[0].id, 2)
    system.settle()
    first, second = interfaces(system)
    assert states(first) == {ItemState.NOT_FOR_PODS: 2}
    assert (first.room, second.room) == (None, 1)
    assert states(second) == {ItemState.FREE: 8}


def test_while_facts_are_unknown_pods_get_what_the_object_shows(system: System) -> None:
    system.add_node()
    system.settle()
    system.use(2)
    system.ingest()
    system.services.state.coordination.begin_generation()
    system.redis.hset(system._keys.generation_times, "began_at", round(system.services.state.now() * 1000) + 1)
    (first,) = interfaces(system)
    assert states(first) == {ItemState.USED: 2, ItemState.FREE: 6}
    assert first.room is None
