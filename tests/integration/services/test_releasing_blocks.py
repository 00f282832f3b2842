"""Blocks that agents of Cilium 1.20 give up are released after the delay, and never while a pod may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest
from pumped_agent import AgentOn

from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.fleet import Agent, Agent120

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pumped import System

DELAY = 180.0
UNASSIGN = "UnassignPrivateIpAddresses"


@pytest.fixture
def releasing(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    options = {"release_excess": True, "release_delay_seconds": DELAY}
    with pumped.running(redis_url, tmp_path, monkeypatch, **options) as system:
        yield system


def given_up(system: System, *, peak: int = 12, used: int = 3, **parts: object) -> AgentOn:
    """A node whose agent had `peak` pods, has `used` now, and has given the rest up."""
    system.add_node(ipam={"pre-allocate": 4} | parts)
    on = AgentOn(system, Agent120)
    system.settle()
    for count in (4, 8, peak):
        on.pods(count)
        system.settle()
    on.report()
    system.settle()
    on.pods(used)
    system.fresh()
    system.settle()
    return on


def pass_time(system: System, seconds: float, on: AgentOn | None = None) -> None:
    """Let time pass, with a read of everything and a report of the agent each minute."""
    while seconds > 0:
        system.later(min(60.0, seconds))
        seconds -= 60.0
        system.resync()
        if on is not None:
            on.report()
            system.settle()


def attached(system: System) -> set[str]:
    """All secondary addresses of the only instance, as they truly are."""
    (instance,) = system.ec2.view().instances
    return {address for each in system.interfaces(instance) for address in each.addresses}


def unlisted(system: System) -> set[str]:
    """The addresses that the agent does not list."""
    (held,) = system.object()["spec"]["ipam"]["pools"]["allocated"]
    return attached(system) - {block.removesuffix("/32") for block in held["cidrs"]}


def test_what_was_given_up_for_the_whole_delay_is_released(releasing: System) -> None:
    system = releasing
    on = given_up(system)
    (instance,) = system.ec2.view().instances
    assert len(on.agent.blocks) == 7
    assert "has given up blocks with 9 addresses" in " ".join(system.status().explanation)
    # An agent of 1.19 that takes over must not hand them out.
    assert len(system.pool()) == 7
    pass_time(system, DELAY - 30, on)
    assert system.mutations() == {}
    held = {address: each.id for each in system.interfaces(instance) for address in each.addresses}
    interfaces = len({held[block.removesuffix("/32")] for block in on.agent.given_up})
    pass_time(system, 91, on)
    assert system.mutations() == {"Unassign": interfaces}
    system.settle()
    on.report()
    assert (len(system.pool()), len(on.agent.blocks), on.agent.dead) == (7, 7, set())
    assert system.status().ready
    system.fresh()
    pass_time(system, 600, on)
    assert (system.mutations(), system.writes()) == ({}, {})
    assert system.clean()


def test_what_is_listed_again_stays(releasing: System) -> None:
    system = releasing
    on = given_up(system)
    pass_time(system, DELAY - 30, on)
    on.pods(12)
    system.settle()
    pass_time(system, DELAY, on)
    assert "Unassign" not in system.mutations()
    assert len(system.pool()) == 16
    assert system.clean()


def test_a_block_that_a_pod_uses_stays_although_it_is_not_listed(releasing: System) -> None:
    """The agent took blocks back in memory, and could not write that yet (C20-11)."""
    system = releasing
    on = given_up(system)
    pass_time(system, DELAY - 30, on)
    used = set(on.pods(12, reports=False))
    assert not used.isdisjoint(unlisted(system))
    system.later(60)
    system.resync()
    pass_time(system, 60)
    assert used <= attached(system)
    assert system.clean()
    # The delay starts again.
    on.pods(3, reports=False)
    before = attached(system)
    pass_time(system, DELAY - 120)
    assert attached(system) == before
    pass_time(system, 180)
    assert len(attached(system)) == 7
    assert system.clean()


@pytest.mark.parametrize("part", ["addresses", "health", "ingress"])
def test_the_agents_own_addresses_stay(releasing: System, part: str) -> None:
    system = releasing
    on = given_up(system)
    own = [block.removesuffix("/32") for block in on.agent.given_up][4]
    value = [{"type": "CiliumInternalIP", "ip": own}] if part == "addresses" else {"ipv4": own}
    system.change("node", lambda body: body["spec"].update({part: value}))
    pass_time(system, DELAY + 240, on)
    assert own in attached(system)
    assert len(attached(system)) == 8


def test_a_silent_agent_proves_nothing(releasing: System) -> None:
    system = releasing
    given_up(system)
    system.kube.core.set_ready("node", ready=False)
    pass_time(system, DELAY + 120)
    assert system.mutations() == {}
    assert "not been ready" in system.status().last_action


def test_watermarks_that_the_agent_does_not_know_bound_the_release(releasing: System) -> None:
    """M-15: what min-allocate wants is not released, however long the agent gives it up."""
    system = releasing
    on = given_up(system, **{"min-allocate": 14})
    assert len(on.agent.blocks) == 7
    pass_time(system, DELAY + 120, on)
    system.settle()
    held = len(on.agent.blocks) + len(on.agent.given_up)
    assert held == 14
    system.fresh()
    pass_time(system, 600, on)
    assert system.mutations() == {}
    assert system.clean()


def test_another_agent_in_between_starts_the_delay_anew(releasing: System) -> None:
    system = releasing
    on = given_up(system)
    pass_time(system, DELAY - 20, on)
    on.upgrade(Agent)
    system.settle()
    assert len(system.pool()) == 16
    on.upgrade(Agent120)
    on.report()
    system.settle()
    pass_time(system, DELAY - 60, on)
    assert system.mutations() == {}
    assert system.clean()


def test_nothing_is_remembered_of_a_lost_redis(releasing: System) -> None:
    system = releasing
    on = given_up(system)
    pass_time(system, DELAY - 30, on)
    system.empty_redis()
    system.settle(within_seconds=80)
    pass_time(system, 60, on)
    assert system.mutations() == {}
    pass_time(system, DELAY, on)
    assert "Unassign" in system.mutations()
    assert system.clean()


def test_a_refused_release_does_not_keep_addresses_from_pods(releasing: System) -> None:
    system = releasing
    on = given_up(system)
    system.ec2.set_knobs(denied_actions=[UNASSIGN])
    pass_time(system, DELAY + 60, on)
    assert "Unassign" in system.mutations()
    system.fresh()
    on.pods(14)
    system.settle(within_seconds=5)
    assert system.mutations().get("Assign", 0) + system.mutations().get("Create", 0) >= 1
    assert len(on.pods(14)) == 14
    assert system.clean()


def test_an_unclear_answer_is_read_before_anything_else(releasing: System) -> None:
    system = releasing
    on = given_up(system)
    pass_time(system, DELAY - 30, on)
    system.ec2.add_faults([Fault(action=UNASSIGN, drop=True, after=True)])
    pass_time(system, 120, on)
    system.settle(within_seconds=120)
    pass_time(system, 180, on)
    assert len(system.pool()) == 7
    assert on.agent.dead == set()
    assert system.clean()


def test_off_means_that_nothing_is_remembered(system: System) -> None:
    on = given_up(system)
    pass_time(system, 600, on)
    assert (system.mutations(), system.writes()) == ({}, {})
    assert len(system.pool()) == 16
    assert system.memory().get("release") in (None, {})
