"""Excess addresses are given back once the agent has let them go, and never while a pod may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest

from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.fleet.agent120 import agent_of
from eni_tasks.sandbox.fleet.agents import Agent
from eni_tasks.sandbox.kube.knobs import Fault as KubeFault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pumped import System

DELAY = 180.0
MARGIN = 25.0  # a busy machine takes its time
UNASSIGN = "UnassignPrivateIpAddresses"


@pytest.fixture
def releasing(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    options = {"release_excess": True, "release_delay_seconds": DELAY, "release_16": True}
    with pumped.running(redis_url, tmp_path, monkeypatch, **options) as system:
        yield system


class Simulated:
    """A node's agent, which writes when it is told to."""

    def __init__(self, system: System, name: str = "node") -> None:
        self._system, self._name = system, name
        self.agent: Agent = agent_of(system.object(name))

    def use(self, count: int) -> None:
        """Pods come or go; the agent does not report it yet."""
        self.agent.observe(self._system.object(self._name))
        before = set(self.agent.used)
        self.agent.set_pod_count(count)
        self._system.ec2.use_addresses(self.agent.used)
        self._system.ec2.free_addresses(sorted(before - {*self.agent.used}))

    def report(self) -> None:
        """Write the whole status, answers included."""
        self.agent.observe(self._system.object(self._name))

        def write(body: dict[str, Any]) -> None:
            body["status"] = self.agent.report(body)["status"]

        self._system.change(self._name, write, status=True)

    def marks(self) -> dict[str, str]:
        found: dict[str, str] = self._system.object(self._name)["status"]["ipam"].get("release-ips", {})
        return found


def in_excess(system: System, *, used: int = 4, peak: int = 9, **parts: Any) -> Simulated:
    """A node that had `peak` pods and has `used` now."""
    system.add_node(ipam={"pre-allocate": 4}, **parts)
    system.settle()
    node = Simulated(system)
    for count in (4, min(8, peak), peak):
        node.use(count)
        node.report()
        system.settle()
    node.use(used)
    node.report()
    system.fresh()
    system.settle()
    return node


def pass_time(system: System, seconds: float) -> None:
    """Let time pass with a read of everything each minute, as the ticker has it."""
    while seconds > 0:
        system.later(min(60.0, seconds))
        seconds -= 60.0
        system.resync()


def test_the_whole_life_of_a_release(releasing: System) -> None:
    system = releasing
    node = in_excess(system)
    assert len(system.pool()) == 13
    assert "5 addresses are in excess" in system.status().explanation[-2]
    pass_time(system, DELAY - MARGIN)
    assert node.marks() == {}
    pass_time(system, MARGIN + 1)
    asked = node.marks()
    assert set(asked.values()) == {"marked-for-release"}
    assert len(asked) == 5
    assert "has been asked for 5 addresses" in system.status().explanation[-1]
    assert system.mutations() == {}
    node.report()
    assert set(node.marks().values()) == {"ready-for-release"}
    system.settle()
    assert system.mutations() == {"Unassign": 1}
    assert system.pool().keys().isdisjoint(asked)
    assert len(system.pool()) == 8
    assert node.marks() == dict.fromkeys(asked, "released")
    node.report()
    system.settle()
    assert node.marks() == {}
    for _ in range(3):
        pass_time(system, DELAY)
    assert system.mutations() == {"Unassign": 1}
    assert system.status().explanation[-1].endswith("nothing is needed.")
    assert not system.memory().get("release")
    assert system.clean()


def test_nothing_is_written_or_remembered_while_it_is_off(system: System) -> None:
    node = in_excess(system)
    for _ in range(3):
        pass_time(system, DELAY)
    assert node.marks() == {}
    assert system.mutations() == {}
    assert not system.memory().get("release")


@pytest.mark.parametrize("mark", ["marked-for-release", "ready-for-release", "do-not-release"])
def test_marks_that_another_operator_left_are_cleared(system: System, mark: str) -> None:
    node = in_excess(system)
    left = sorted(system.pool())[-3:]

    def add(body: dict[str, Any]) -> None:
        body["status"]["ipam"]["release-ips"] = {**dict.fromkeys(left, mark), "10.0.0.99": "released"}

    system.change("node", add, status=True)
    pass_time(system, 60)
    assert node.marks() == {"10.0.0.99": "released"}  # the agent's to delete
    assert system.mutations() == {}


def marked(system: System) -> tuple[Simulated, set[str]]:
    node = in_excess(system)
    pass_time(system, DELAY)
    pass_time(system, 1)
    assert len(node.marks()) == 5
    return node, set(node.marks())


def test_a_refused_address_stays_and_its_clock_starts_anew(releasing: System) -> None:
    system = releasing
    node, asked = marked(system)
    taken = min(asked)
    # The pod got the address before the agent saw the mark, and the agent has not reported it yet.
    node.agent.used.append(taken)
    system.ec2.use_addresses(node.agent.used)
    node.agent.observe(system.object())
    used = [address for address in node.agent.used if address != taken]
    answers = node.agent.report(system.object())["status"]["ipam"]["release-ips"]

    def answer(body: dict[str, Any]) -> None:
        body["status"]["ipam"]["release-ips"] = answers
        body["status"]["ipam"]["used"] = {address: {} for address in used}

    system.change("node", answer, status=True)
    system.settle()
    assert system.mutations() == {"Unassign": 1}
    assert taken in system.pool()
    assert len(system.pool()) == 9
    assert system.clean()
    node.report()
    system.settle()
    pass_time(system, 2 * DELAY)
    assert system.mutations() == {"Unassign": 1}
    assert len(system.pool()) == 9


def test_no_excess_any_more_takes_the_marks_back(releasing: System) -> None:
    system = releasing
    node, _ = marked(system)
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 5}))
    node.use(8)  # all that are not marked
    node.report()
    assert set(node.marks().values()) == {"ready-for-release"}
    system.settle()
    assert node.marks() == {}
    node.use(13)
    assert len(node.agent.used) == 13
    assert system.mutations() == {}
    assert system.clean()


def test_an_agent_that_never_answers_keeps_its_addresses(releasing: System) -> None:
    system = releasing
    node = in_excess(system)
    node.agent.silent = True
    for _ in range(4):
        pass_time(system, DELAY)
        node.report()
    assert set(node.marks().values()) == {"marked-for-release"}
    assert system.mutations() == {}
    node.use(9)
    node.report()
    system.settle()
    assert node.marks() == {}
    assert system.mutations() == {}


@pytest.mark.parametrize("change", ["used", "kept", "replaced", "deleted", "agent of 1.20", "watermark"])
def test_what_the_agent_did_since_the_watch_last_spoke_stops_the_call(releasing: System, change: str) -> None:
    system = releasing
    node, asked = marked(system)
    node.report()
    system.ingest()  # the stored object shows that the agent agrees
    taken = min(asked)
    body = system.object()
    if change == "used":
        system.change("node", lambda body: body["status"]["ipam"]["used"].update({taken: {}}), status=True)
    elif change == "kept":
        node.agent.unsteady = True
        node.report()
    elif change == "watermark":
        system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 9}))
    elif change == "agent of 1.20":
        system.change("node", lambda body: body["status"]["ipam"].pop("used"), status=True)
        pools = {"requested": [{"pool": "default", "needed": {"ipv4-addrs": 8}}]}
        system.change("node", lambda body: body["spec"]["ipam"].update({"pools": pools}))
    else:
        system.kube.store.delete("node")
        if change == "replaced":
            again = {key: body[key] for key in ("apiVersion", "kind", "spec")}
            system.kube.store.create({**again, "metadata": {"name": "node"}})
    reports = system.pump()
    assert system.mutations() == {}, reports
    node.agent.unsteady = False


def test_no_api_server_no_release(releasing: System) -> None:
    system = releasing
    node, _ = marked(system)
    node.report()
    system.ingest()
    system.kube.faults.add([KubeFault(verb="get", code=503, times_count=20)])
    system.pump()
    assert system.mutations() == {}
    assert "nothing is released" in system.status().trouble
    system.kube.faults.clear()
    pass_time(system, 60)
    assert system.mutations() == {"Unassign": 1}
    assert system.status().trouble == ""
    assert len(system.pool()) == 8


@pytest.mark.parametrize("lag", [20, 40])
def test_late_reads_bring_nothing_back_that_was_given_back(releasing: System, lag: float) -> None:
    system = releasing
    node, asked = marked(system)
    node.report()
    system.ec2.set_knobs(read_lag_seconds={"DescribeNetworkInterfaces": lag})
    system.settle()
    assert system.mutations() == {"Unassign": 1}
    for _ in range(12):
        system.settle(within_seconds=5)
        system.resync()
        node.report()
        assert system.pool().keys().isdisjoint(asked)
    assert node.marks() == {}
    pass_time(system, 240)
    assert len(system.pool()) == 8
    assert system.mutations() == {"Unassign": 1}
    assert system.clean()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_no_answer_of_ec2(releasing: System, *, after: bool) -> None:
    system = releasing
    node, asked = marked(system)
    node.report()
    system.ec2.add_faults([Fault(action=UNASSIGN, drop=True, after=after, times=1)])
    system.settle()
    assert system.mutations() == {"Unassign": 1}
    assert set(node.marks()) == asked  # the agent hands none of them out
    for _ in range(5):
        pass_time(system, 60)
        node.report()
    system.settle()
    assert len(system.pool()) == 8
    assert system.mutations() == {"Unassign": 1 if after else 2}
    assert node.marks() == {}
    assert system.clean()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("UnauthorizedOperation", "You are not authorized"),
        ("RequestLimitExceeded", "Request limit exceeded."),
        ("InvalidParameterValue", "Some of the specified addresses are not assigned to interface eni-1"),
        ("InternalError", "An internal error has occurred"),
    ],
)
def test_a_refusal_of_ec2_keeps_the_agreement(releasing: System, code: str, message: str) -> None:
    system = releasing
    node, asked = marked(system)
    node.report()
    system.ec2.add_faults([Fault(action=UNASSIGN, code=code, message=message, times=1)])
    system.settle()
    assert set(node.marks()) == asked
    assert len(system.pool()) == 13
    for _ in range(5):
        pass_time(system, 60)
        node.report()
    assert len(system.pool()) == 8
    assert system.mutations()["Unassign"] == 2
    assert system.clean()


def test_an_address_that_comes_back_has_a_new_life(releasing: System) -> None:
    """Released, and assigned again before the agent has deleted its entry: it is usable, and a candidate anew."""
    system = releasing
    small = system.built.world.add_subnet(system.built.vpc_id, "a", "10.0.200.0/28").id
    # The subnet has no other address left than those that are given back.
    node = in_excess(
        system, used=4, peak=6, instance=system.launch("m5.xlarge", subnet=small), instance_type="m5.xlarge"
    )
    pass_time(system, DELAY)
    pass_time(system, 1)
    asked = set(node.marks())
    node.report()
    system.settle()
    assert node.marks() == dict.fromkeys(asked, "released")
    system.resync()  # the subnet has two free addresses again
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 6}))
    system.settle()
    assert asked <= system.pool().keys()
    assert node.marks() == {}
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 4}))
    system.settle()
    pass_time(system, DELAY - MARGIN)
    assert node.marks() == {}
    assert system.mutations() == {"Unassign": 1, "Assign": 1}
    pass_time(system, MARGIN + 61)
    node.report()
    system.settle()
    assert system.mutations() == {"Unassign": 2, "Assign": 1}
    assert system.clean()


def test_after_a_loss_of_redis_an_agreement_of_before_counts_for_nothing(releasing: System) -> None:
    system = releasing
    node, asked = marked(system)
    node.report()
    system.empty_redis()
    system.settle(within_seconds=60)
    assert node.marks() == {}
    assert system.mutations() == {}
    pass_time(system, DELAY - 60 - MARGIN)
    assert node.marks() == {}
    pass_time(system, MARGIN + 120)
    assert set(node.marks()) == asked
    assert system.mutations() == {}


def test_a_restored_object_shows_agreements_of_an_earlier_time(releasing: System) -> None:
    """The agent agreed, the question was taken back, pods got the addresses, and etcd is restored to before that."""
    system = releasing
    node, asked = marked(system)
    node.report()
    system.kube.store.back_up()
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 9}))
    system.settle()
    assert node.marks() == {}
    system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 4}))
    system.settle()
    pass_time(system, DELAY)
    pass_time(system, 1)
    assert set(node.marks()) == asked  # asked again
    taken = min(asked)
    node.agent.used.append(taken)  # by now a pod has one of them, which the agent has not reported
    system.ec2.use_addresses(node.agent.used)
    system.kube.store.restore()
    assert node.marks()[taken] == "ready-for-release"
    system.settle()
    assert system.mutations() == {}
    assert node.marks() == {}
    node.report()
    pass_time(system, 3 * DELAY)
    assert taken in system.pool()
    assert system.clean()


def test_two_interfaces_are_two_calls(releasing: System) -> None:
    system = releasing
    node = in_excess(system, used=1, peak=12)
    assert len(system.pool()) == 16
    for _ in range(4):
        pass_time(system, DELAY + 60)
        node.report()
        system.settle()
        node.report()
        system.settle()
    assert system.mutations() == {"Unassign": 2}
    assert len(system.pool()) == 5
    assert system.clean()


# -- agents that can't be asked --------------------------------------------------------------------------
def of_16(system: System) -> Simulated:
    instance = system.launch()
    eni = {
        "instance-id": instance.id,
        "instance-type": "m5.large",
        "vpc-id": instance.vpc_id,
        "availability-zone": instance.availability_zone,
        "first-interface-index": 0,
        "pre-allocate": 4,
    }
    head = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "node"}}
    system.kube.store.create({**head, "spec": {"eni": eni, "ipam": {}}})
    system.settle()
    node = Simulated(system)
    for count in (4, 8, 9, 4):
        node.use(count)
        node.report()
        system.settle()
    system.fresh()
    return node


def test_an_agent_of_16_loses_what_it_does_not_use_after_it_left_the_pool(releasing: System) -> None:
    system = releasing
    node = of_16(system)
    held = system.pool()
    assert len(held) == 13
    pass_time(system, DELAY + 1)
    withdrawn = held.keys() - system.pool().keys()
    assert len(withdrawn) == 5
    assert system.mutations() == {}
    pass_time(system, DELAY - 2 * MARGIN)
    assert system.mutations() == {}
    pass_time(system, 2 * MARGIN + 62)
    assert system.mutations() == {"Unassign": 1}
    assert len(system.pool()) == 8
    assert system.status().ready
    node.use(4)
    node.report()
    pass_time(system, 2 * DELAY)
    assert system.mutations() == {"Unassign": 1}
    assert system.clean()


def test_what_an_agent_of_16_took_before_it_left_the_pool_comes_back(releasing: System) -> None:
    system = releasing
    node = of_16(system)
    node.use(6)  # before it is withdrawn, and reported after
    took = set(node.agent.used)
    pass_time(system, DELAY + 1)
    assert took - system.pool().keys(), "the test needs a used address that was withdrawn"
    node.report()
    system.settle()
    assert took <= system.pool().keys()
    pass_time(system, 3 * DELAY)
    assert took <= system.pool().keys()
    assert len(system.pool()) == 10
    assert system.clean()


def test_an_agent_of_16_is_left_alone_unless_it_is_forced(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch, release_excess=True) as system:
        of_16(system)
        for _ in range(4):
            pass_time(system, DELAY)
        assert len(system.pool()) == 13
        assert system.mutations() == {}
        assert "1.6, can't be asked" in system.status().explanation[-1]


def test_what_happened_is_counted_and_told(releasing: System) -> None:
    system = releasing
    node, _ = marked(system)
    system.services.counters.drain()
    node.report()
    system.settle()
    counted = {
        (name, part): (labels, value) for (name, part, labels), value in system.services.counters.drain().items()
    }
    subnet = system.built.node_subnets["a"]
    assert counted["ipam_ip_release_ops", ""] == ((subnet,), 5)
    assert counted["ipam_release_duration_seconds", "sum"][0] == ("releaseIP", "success", subnet)
    (event,) = [each for each in system.services.state.events.latest("node", 20) if each.what == UNASSIGN]
    assert event.fields["count"] == "5"


def test_changes_on_a_node_with_excess_cost_no_call_and_no_write_before_the_delay(releasing: System) -> None:
    """Each change is looked at, so that an address that was used meanwhile is not asked for."""
    system = releasing
    node = in_excess(system)
    before = set(system.memory()["release"]["since"])
    taken = min(before)
    node.use(4)
    system.fresh()
    system.later(DELAY - MARGIN)
    node.agent.used.append(taken)
    node.report()
    system.ingest()
    system.pump()
    node.agent.used.remove(taken)
    node.report()
    system.ingest()
    system.pump()
    assert (system.mutations(), system.reads(), system.writes()) == ({}, {}, {})
    pass_time(system, MARGIN + 1)
    assert set(node.marks()) == before - {taken}
