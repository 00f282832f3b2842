"""What a change costs when nothing goes wrong: calls, writes and messages counted exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pumped import System

FIRST_READ = {
    "DescribeInstanceTypes": 1,
    "DescribeNetworkInterfaces": 1,
    "DescribeRouteTables": 1,
    "DescribeSecurityGroups": 1,
    "DescribeSubnets": 1,
    "DescribeVpcs": 1,
}


@pytest.mark.parametrize(
    ("first_index", "pre_allocate", "mutations", "sizes"),
    [
        (0, 8, {"Assign": 1}, [8]),
        (1, 8, {"Create": 1, "Attach": 1, "Modify": 1}, [0, 8]),
        (0, 12, {"Create": 1, "Attach": 1, "Modify": 1, "Assign": 1}, [9, 3]),
        (0, 20, {"Create": 2, "Attach": 2, "Modify": 2, "Assign": 1}, [9, 9, 2]),
    ],
    ids=["assign", "one-interface", "assign-and-interface", "assign-and-two"],
)
def test_a_new_node_is_filled(
    system: System, first_index: int, pre_allocate: int, mutations: dict[str, int], sizes: list[int]
) -> None:
    instance = system.add_node(eni={"first-interface-index": first_index}, ipam={"pre-allocate": pre_allocate})
    system.settle()
    assert system.mutations() == mutations
    assert system.reads() == FIRST_READ
    interfaces = system.interfaces(instance)
    assert [len(each.addresses) for each in interfaces] == sizes
    assert system.pool() == {address: each.id for each in interfaces for address in each.addresses}
    shown = system.object()["status"]["eni"]["enis"]
    assert {name: entry.get("addresses", []) for name, entry in shown.items()} == {
        each.id: list(each.addresses) for each in interfaces
    }
    assert all(each.attachment.delete_on_termination for each in interfaces[1:] if each.attachment)
    assert system.status().ready
    assert system.clean()


def test_one_used_address_costs_one_assign_and_two_writes(system: System) -> None:
    instance = system.add_node()
    system.settle()
    system.fresh()
    system.use(1)
    system.settle()
    assert system.mutations() == {"Assign": 1}
    assert system.reads() == {}
    assert system.writes() == {"status": 1, "spec": 1}
    assert dict(system.messages.sent) == {"maintain": 1, "publish": 1}
    assert len(system.pool()) == 9
    assert len(system.interfaces(instance)[0].addresses) == 9


def test_when_nothing_changed_nothing_is_done(system: System) -> None:
    system.add_node()
    system.settle()
    system.fresh()
    system.resync()
    system.settle(within_seconds=3600)
    assert system.mutations() == {}
    assert system.writes() == {}
    assert dict(system.messages.sent) == {"fleet": 1}
    assert set(system.reads().values()) == {1}


def test_reads_do_not_grow_with_the_nodes(system: System) -> None:
    for number in range(30):
        system.add_node(f"node-{number}")
    system.settle()
    assert system.mutations() == {"Assign": 30}
    assert system.reads() == FIRST_READ
    assert all(len(system.pool(f"node-{number}")) == 8 for number in range(30))


def test_a_doubled_message_changes_nothing(system: System) -> None:
    system.add_node()
    system.settle()
    system.use(1)
    system.ingest()
    system.fresh()
    system.messages.waiting.extend([*system.messages.waiting] * 3)
    system.settle()
    assert system.mutations() == {"Assign": 1}
    assert system.writes() == {"status": 1, "spec": 1}


def test_many_events_of_one_change_cause_one_assign(system: System) -> None:
    system.add_node()
    system.settle()
    system.fresh()
    for count in (1, 2, 3, 4, 5):
        system.use(count)
        system.ingest()
    assert system.messages.sent["maintain"] == 1
    system.settle()
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1, "Assign": 1}
    assert len(system.pool()) == 13


def test_what_redis_forgot_is_found_again(system: System) -> None:
    instance = system.add_node()
    system.settle()
    before = system.pool()
    system.empty_redis()
    system.fresh()
    system.settle(within_seconds=30)
    assert system.mutations() == {}
    assert system.writes() == {}
    assert system.pool() == before
    assert len(system.interfaces(instance)) == 1
    assert system.status().ready
