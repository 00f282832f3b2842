"""What a removed node left behind is looked for at once, by tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest
from collecting_under_test import GRACE, NODE, PODS, deletes, left

from eni_tasks.model.network import InstanceId, ownership
from eni_tasks.model.work import WorkKind

if TYPE_CHECKING:
    from pumped import System


def remove(system: System) -> None:
    """Delete the object, and let the watcher see it."""
    uid = system.object()["metadata"]["uid"]
    system.kube.store.delete("node")
    system.services.ingest.removed(NODE, uid)


@pytest.mark.parametrize("after", [False, True], ids=["created", "perhaps-created"])
def test_b02_a_node_goes_while_its_interface_is_made(system: System, *, after: bool) -> None:
    """B07: its journal goes with it; what it left is looked for at once, and soon deleted."""
    system.add_node(eni=PODS)
    system.add_node("other")
    system.settle_reads()
    system.dies(system.services.ec2, "create_interface" if after else "attach_interface", after=after)
    with pytest.raises(pumped.Killed):
        system.settle(within_seconds=5)
    system.services = system.process()
    (orphan,) = system.ec2.leftovers(ownership(system.cluster))
    remove(system)
    system.fresh()
    system.pump()
    assert system.reads() == {"DescribeNetworkInterfaces": 1}
    system.settle(within_seconds=70)
    assert deletes(system) == [orphan.id]
    assert system.clean()


def test_b07_an_instance_ends_before_its_interface_was_marked(system: System) -> None:
    """Delete-on-termination is not set: the interface becomes available minutes after the node went."""
    system.ec2.set_knobs(terminate_seconds=240)
    instance = system.add_node(eni=PODS)
    system.add_node("other")
    system.settle_reads()
    system.dies(system.services.ec2, "set_delete_on_termination", after=False)
    with pytest.raises(pumped.Killed):
        system.settle(within_seconds=5)
    system.services = system.process()
    second = system.interfaces(instance)[1]
    remove(system)
    system.ec2.terminate_instance(instance.id)
    system.settle(within_seconds=100)
    assert deletes(system) == []
    system.later(200)
    assert [each.id for each in system.ec2.leftovers(ownership(system.cluster))] == [second.id]
    system.services.work.collect_orphans()  # the next period
    system.settle(within_seconds=40)
    assert deletes(system) == [second.id]
    assert system.clean()


def test_b07_a_call_was_under_way_when_the_node_went(fleet: System) -> None:
    """The first pass finds nothing yet; the second does not wait for the next period."""
    fleet.services.work.collect_orphans([InstanceId("i-0123")])
    fleet.pump()
    (orphan,) = left(fleet)
    fleet.settle(within_seconds=70)
    assert deletes(fleet) == [orphan]


def test_a_node_goes_while_another_orphan_waits(fleet: System) -> None:
    """Its pass does not wait with that one; nor is that one's wait cut short."""
    (other,) = left(fleet, instance="i-other")
    fleet.services.work.collect_orphans()
    fleet.pump()
    (orphan,) = left(fleet)
    fleet.services.work.collect_orphans([InstanceId("i-0123")])
    fleet.settle(within_seconds=40)
    assert deletes(fleet) == [orphan]
    fleet.settle(within_seconds=GRACE)
    assert deletes(fleet) == [orphan, other]


def test_many_nodes_go_at_once_and_one_pass_is_enough(fleet: System) -> None:
    for number in range(50):
        fleet.services.work.collect_orphans([InstanceId(f"i-{number}")])
    assert fleet.messages.sent == {WorkKind.FLEET: 1}
    fleet.settle(within_seconds=120)
    assert fleet.reads()["DescribeNetworkInterfaces"] == 2
