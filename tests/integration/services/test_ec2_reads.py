"""Reads that fail, lag, or hide something: unknown is not zero, and absence is no fact at first sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from pumped import System

    from eni_tasks.sandbox.ec2.records import Instance


def two_interfaces(system: System) -> tuple[Instance, str]:
    """A node that holds nine addresses on each of two interfaces; with the id of the second."""
    instance = system.add_node(ipam={"pre-allocate": 9})
    system.settle()
    system.use(9)
    system.settle()
    assert [len(each.addresses) for each in system.interfaces(instance)] == [9, 9]
    system.later(1)
    system.fresh()
    return instance, system.interfaces(instance)[1].id


def hide(system: System, interface: str, times: int | None = 1) -> None:
    system.ec2.add_faults([Fault(action="DescribeNetworkInterfaces", hides=[interface], times=times)])


def test_one_read_that_misses_an_interface_changes_nothing(system: System) -> None:
    """B14."""
    _, hidden = two_interfaces(system)
    pool = system.pool()
    hide(system, hidden)
    system.resync()
    assert system.pool() == pool
    system.later(60)
    system.resync()
    assert system.pool() == pool
    assert system.mutations() == {}
    assert system.writes() == {}
    assert system.status().ready


def test_while_unconfirmed_nothing_is_assigned(system: System) -> None:
    _, hidden = two_interfaces(system)
    hide(system, hidden)
    system.resync()
    system.use(12)
    system.ingest()
    system.pump()
    assert system.mutations() == {}
    system.settle(within_seconds=5)
    assert system.mutations() == {"Create": 1, "Attach": 1, "Modify": 1}
    assert len(system.pool()) == 21
    assert system.clean()


def test_an_interface_that_is_gone_in_two_reads_is_gone(system: System) -> None:
    """B15: the pool loses its addresses, the status the interface, and what is needed follows."""
    _, gone = two_interfaces(system)
    system.ec2.remove_interface(gone)
    system.resync()
    assert gone in system.pool().values()
    system.later(60)
    system.resync()
    assert gone not in system.pool().values()
    assert gone not in system.object()["status"]["eni"]["enis"]
    assert system.status().needed == 0
    assert len(system.pool()) == 18
    assert system.clean()


def test_what_is_gone_leaves_the_object_even_while_ec2_refuses_more(system: System) -> None:
    _, gone = two_interfaces(system)
    system.ec2.set_knobs(denied_actions=["CreateNetworkInterface", "AssignPrivateIpAddresses"])
    system.use(11)
    system.settle()
    system.later(1)
    system.ec2.remove_interface(gone)
    system.resync()
    system.later(20)
    system.resync()
    assert gone not in system.pool().values()


@pytest.mark.parametrize("code", ["AuthFailure", "RequestLimitExceeded", "InternalError"])
def test_nothing_is_written_or_changed_before_a_good_read(system: System, code: str) -> None:
    """B68: the object shows two interfaces and twelve addresses of earlier days; they stay."""
    instance = system.launch()
    pool = {f"10.0.9.{number}": {"resource": "eni-2"} for number in range(12)}
    system.add_node(instance=instance, ipam={"pool": pool})
    enis = {"eni-1": {"id": "eni-1", "number": 0}, "eni-2": {"id": "eni-2", "number": 1}}
    system.change("node", lambda body: body.update(status={"eni": {"enis": enis}}), status=True)
    before = system.object()
    status = 500 if code == "InternalError" else 400
    system.ec2.add_faults([Fault(action="Describe*", code=code, status=status, times=None)])
    system.settle(within_seconds=600)
    assert system.object() == before
    assert system.mutations() == {}
    assert system.writes() == {}
    assert sum(system.reads().values()) <= 2 * 60 + 2  # boto3 itself asks twice
    system.ec2.clear_faults()
    system.settle(within_seconds=120)
    assert set(system.pool().values()) == {system.interfaces(instance)[0].id}
    assert system.status().ready


def test_nothing_is_changed_while_reads_fail(system: System) -> None:
    """B68: reads fail after a good start, mutations would work; they go on with the first good read."""
    system.add_node(ipam={"pre-allocate": 2})
    system.settle()
    system.fresh()
    system.ec2.add_faults([Fault(action="Describe*", code="AuthFailure", times=None)])
    system.later(301)
    system.resync()
    for used in (1, 2):
        system.use(used)
        system.settle(within_seconds=120)
    assert system.mutations() == {}
    assert system.services.maintain.run(NodeName("node"))["reason"] == "facts-too-old"
    assert "AuthFailure" in system.services.state.summary.read([]).read_failure
    system.ec2.clear_faults()
    system.settle(within_seconds=60)
    assert system.mutations() == {"Assign": 1}
    assert system.status().ready
    system.resync()
    assert system.services.state.summary.read([]).read_failure == ""


def test_one_read_that_fails_stops_no_node(system: System) -> None:
    system.add_node(ipam={"pre-allocate": 2})
    system.settle()
    system.fresh()
    system.ec2.add_faults([Fault(action="DescribeVpcs", code="InternalError", status=500, times=2)])
    system.resync()
    system.use(1)
    system.settle()
    assert system.mutations() == {"Assign": 1}


def test_throttled_reads_stop_no_node(system: System) -> None:
    """B58: throttled means unknown, never bad."""
    system.add_node()
    system.settle()
    system.fresh()
    system.ec2.add_faults([Fault(action="Describe*", code="RequestLimitExceeded", times=None)])
    system.resync()
    system.use(1)
    system.settle()
    assert system.mutations() == {"Assign": 1}


def test_one_bad_page_discards_the_whole_read(system: System) -> None:
    """B60."""
    for number in range(5):
        system.add_node(f"node-{number}")
    system.settle()
    before = {f"node-{number}": system.pool(f"node-{number}") for number in range(5)}
    system.fresh()
    system.ec2.add_faults([Fault(action="DescribeNetworkInterfaces", code="AuthFailure", times=3)])
    system.resync()
    assert system.mutations() == {}
    assert system.writes() == {}
    assert {name: system.pool(name) for name in before} == before


@pytest.mark.parametrize("lag", [4, 8], ids=["within-the-settle-time", "longer"])
def test_a_read_that_lags_does_not_undo_what_a_mutation_answered(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lag: float
) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch, settle_seconds=5) as system:
        instance = system.add_node()
        system.settle()
        system.ec2.set_knobs(read_lag_seconds=lag)
        system.use(1)
        system.fresh()
        system.settle()
        for _ in range(20):
            system.later(1)
            system.resync()
        assert system.mutations() == {"Assign": 1}
        assert system.writes() == {"status": 1, "spec": 1}
        assert len(system.interfaces(instance)[0].addresses) == len(system.pool()) == 9


def test_an_instance_that_ec2_does_not_show_yet(system: System) -> None:
    system.ec2.set_knobs(read_lag_seconds=30)
    system.add_node()
    system.settle(within_seconds=5)
    assert system.mutations() == {}
    assert system.writes() == {}
    system.settle(within_seconds=60)
    assert system.mutations() == {"Assign": 1}
    assert system.status().ready


def test_one_question_for_an_unknown_type(system: System) -> None:
    """B38, B39: a hundred nodes of it wait, others are served; it is asked for again after a while."""
    for number in range(100):
        system.add_node(f"odd-{number}", eni={"instance-type": "zz9.large"})
    system.add_node("healthy")
    system.settle(within_seconds=60)
    assert system.reads()["DescribeInstanceTypes"] == 2  # with the odd one, and without it
    assert system.mutations() == {"Assign": 1}
    assert system.status("healthy").ready
    odd = system.status("odd-7")
    assert odd.reason == "limits-unknown"
    assert "zz9.large" in odd.trouble
    assert "zz9.large" in system.object("odd-7")["status"]["ipam"]["operator-status"]["error"]
    system.fresh()
    system.later(601)
    system.resync()
    system.resync()
    assert system.reads()["DescribeInstanceTypes"] == 1


def test_one_question_for_a_type_of_a_hundred_nodes(system: System) -> None:
    """B39, B40."""
    for number in range(100):
        system.add_node(f"node-{number}", "c5.xlarge")
    system.settle()
    assert system.reads()["DescribeInstanceTypes"] == 1
    assert system.mutations() == {"Assign": 100}


def test_types_cannot_be_asked_for(system: System) -> None:
    """B77: known types are served on."""
    system.add_node("known")
    system.settle()
    system.ec2.set_knobs(denied_actions=["DescribeInstanceTypes"])
    system.add_node("second")
    system.add_node("new", "c5.large")
    system.settle(within_seconds=60)
    assert system.status("second").ready
    assert not system.status("new").ready
    assert system.status("new").reason in ("limits-unknown", "instance-not-read")
    system.ec2.set_knobs(denied_actions=[])
    system.later(601)
    system.resync()
    assert system.status("new").ready
