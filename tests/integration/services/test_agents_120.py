"""Nodes with agents of Cilium 1.20: demand from `spec.ipam.pools`, and what their object shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumped_agent import AgentOn

from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.fleet import Agent, Agent120

if TYPE_CHECKING:
    from pumped import System


def test_a_new_node_gets_what_its_agent_asks_for(system: System) -> None:
    system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    assert len(system.pool()) == 8
    on.report()
    assert on.agent.started
    on.pods(5)
    system.settle()
    assert (len(system.pool()), system.mutations()) == (13, {"Assign": 2, "Create": 1, "Attach": 1, "Modify": 1})
    status = system.status()
    assert (status.used, status.available, status.reason, status.ready) == (5, 13, "at-size", True)
    # What is used is the agent's to say.
    assert "used" not in system.object()["status"].get("ipam", {})
    on.report()
    assert len(on.agent.blocks) == 13
    system.fresh()
    system.resync()
    assert (system.mutations(), system.writes()) == ({}, {})
    assert system.clean()


def test_waiting_pods_are_served(system: System) -> None:
    system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    on.pods(12)
    assert on.agent.waiting == 4
    system.settle()
    assert len(on.pods(12)) == 12
    assert len(system.pool()) == 20
    assert system.clean()


def test_an_upgrade_and_a_downgrade_move_nothing(system: System) -> None:
    system.add_node()
    on = AgentOn(system, Agent)
    system.settle()
    on.pods(5)
    system.settle()
    pool = system.pool()
    assert len(pool) == 13
    system.fresh()
    on.upgrade(Agent120)
    assert system.object()["status"]["ipam"]["used"] == {}
    system.settle()
    system.resync()
    assert (system.status().used, system.status().ready) == (5, True)
    on.upgrade(Agent, reports=False)  # it has started, and the object still looks like that of 1.20
    system.settle()
    on.report()
    system.settle()
    assert system.status().used == 5
    system.resync()
    assert (system.mutations(), system.writes(), system.pool()) == ({}, {}, pool)
    on.pods(6)
    system.settle()
    assert len(system.pool()) == 14
    assert system.clean()


def test_a_changed_pre_allocate_counts_at_once(system: System) -> None:
    system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    on.pods(8)
    system.settle()
    assert len(system.pool()) == 16
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 12}))
    system.settle()
    assert (system.status().used, len(system.pool())) == (8, 20)
    on.report()
    system.settle()
    assert (system.status().used, len(system.pool())) == (8, 20)


def test_a_listed_block_that_reads_lack_stays_shown(system: System) -> None:
    instance = system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    on.pods(8)
    system.settle()
    on.report()
    on.pods(12)
    system.settle()
    on.report()
    hidden = system.interfaces(instance)[1].id
    listed = set(on.agent.blocks)
    system.later(1)
    system.ec2.add_faults([Fault(action="DescribeNetworkInterfaces", hides=[hidden], times=None)])
    system.resync()
    system.settle(within_seconds=40)
    on.report()
    assert (set(on.agent.blocks), on.agent.dead) == (listed, set())
    # The same from the object alone, when Redis has lost what it knew.
    system.empty_redis()
    system.settle(within_seconds=40)
    on.report()
    assert (set(on.agent.blocks), on.agent.dead) == (listed, set())


def test_another_agent_still_asks_by_what_it_uses(system: System) -> None:
    """`used` decides: what an agent of 1.20 asked for stays in the object after a downgrade."""
    system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    on.pods(3)
    on.upgrade(Agent)
    system.change(
        "node", lambda body: body["spec"]["ipam"]["pools"]["requested"][0]["needed"].update({"ipv4-addrs": 90})
    )
    system.settle()
    assert (system.status().used, len(system.pool())) == (3, 11)


def test_blocks_of_an_earlier_instance_are_told(system: System) -> None:
    system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    on.report()
    assert "restart the agent" not in " ".join(system.status().explanation)
    held = {"pool": "default", "cidrs": [*on.agent.blocks, "10.77.0.16/28"]}
    system.change("node", lambda body: body["spec"]["ipam"]["pools"].update(allocated=[held]))
    system.settle()
    said = system.status().explanation[0]
    assert "lists blocks that i-" in said
    assert said.endswith("does not hold: 10.77.0.16/28. If that lasts, restart the agent.")


def test_an_agent_that_does_not_take_what_it_is_shown_is_told(system: System) -> None:
    system.add_node()
    on = AgentOn(system, Agent120)
    system.settle()
    on.report()
    held = {"pool": "default", "cidrs": on.agent.blocks[:3]}
    system.change("node", lambda body: body["spec"]["ipam"]["pools"].update(allocated=[held]))
    system.settle()
    assert "asks for 8 addresses and lists only 3" in system.status().explanation[0]
