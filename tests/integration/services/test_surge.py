"""Pods that wait raise what is asked for, once a node is in deficit: from the API server's pods to EC2's calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import WorkKind
from eni_tasks.services import pending_pods

if TYPE_CHECKING:
    from pumped import System

BIG = "m5.4xlarge"  # 8 interfaces of 29


def count(system: System, **waiting: int) -> None:
    """Let pods wait on nodes, and a watcher list them and write the counts."""
    for name, number in waiting.items():
        system.kube.core.set_pods(name, [], waiting=number, waiting_on_host_network=3)
    system.services.pending_pods.take_list(system.services.pod_feed.pages())
    system.services.pending_pods.write()


def test_one_call_serves_all_that_wait(system: System) -> None:
    system.add_node(instance_type=BIG)
    system.settle()
    assert len(system.pool()) == 8
    count(system, node=20)
    system.use(8)
    system.fresh()
    system.settle()
    # 8 are needed and 12 more are waited for; pods on the host's network take no address.
    assert (system.mutations(), len(system.pool())) == ({"Assign": 1}, 28)
    assert system.clean()


def test_pods_that_wait_are_no_need_by_themselves(system: System) -> None:
    system.add_node(instance_type=BIG)
    system.settle()
    system.fresh()
    count(system, node=20)
    system.settle()
    system.resync()
    assert (system.mutations(), len(system.pool())) == ({}, 8)
    assert set(system.messages.sent) == {WorkKind.FLEET}


def test_a_new_interface_gets_room_for_all_that_wait(system: System) -> None:
    count(system, node=17)
    system.add_node(instance_type=BIG, eni={"first-interface-index": 1})
    system.settle()
    assert (system.mutations(), len(system.pool())) == ({"Create": 1, "Attach": 1, "Modify": 1}, 17)


@pytest.mark.parametrize("ipam", [{"max-allocate": 12}, {"max-allocate": 12, "max-above-watermark": 5}])
def test_max_allocate_is_never_exceeded(system: System, ipam: dict[str, int]) -> None:
    count(system, node=30)
    system.add_node(instance_type=BIG, ipam=ipam)
    system.settle()
    assert len(system.pool()) == 12


def test_plan_says_why_more_is_asked_for(system: System) -> None:
    system.add_node(instance_type=BIG)
    system.settle_reads()
    count(system, node=20)
    decision = system.services.status.plan(NodeName("node")).plan
    assert "20 pods wait there" in " ".join(decision.explanation)
    assert decision.action.count == 20


def test_counts_expire_and_are_written_as_rarely_as_possible(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    system.add_node(instance_type=BIG)
    system.settle()
    count(system, node=20, elsewhere=1)
    assert system.services.state.nodes.read(NodeName("node")).pending_pods == 20
    assert 0 < system.redis.pttl(system._keys.pending_pods) <= pending_pods.LIFETIME_SECONDS * 1000
    # Unchanged counts are written before they expire, and not sooner.
    system.redis.delete(system._keys.pending_pods)
    system.services.pending_pods.write()
    assert not system.redis.exists(system._keys.pending_pods)
    monkeypatch.setattr(pending_pods, "AGAIN_SECONDS", 0.0)
    system.services.pending_pods.write()
    assert system.redis.hgetall(system._keys.pending_pods) == {b"node": b"20", b"elsewhere": b"1"}
    # Without a watcher that follows the pods, none counts as waiting.
    system.redis.delete(system._keys.pending_pods)
    assert system.services.state.nodes.read(NodeName("node")).pending_pods == 0
    count(system, node=0, elsewhere=0)
    assert system.redis.hgetall(system._keys.pending_pods) == {}
