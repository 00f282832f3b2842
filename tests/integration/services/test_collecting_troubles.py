"""The orphans' collector when things go wrong: workers that die, claims that end, EC2 that refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest
from collecting_under_test import GRACE, REMOVED_WAIT, collect, deletes, left, there

from eni_tasks.adapters.ec2 import reads
from eni_tasks.model.work import WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from pumped import System


# -- when things go wrong ----------------------------------------------------------------------------
DYING = [("ec2", "delete_interface"), ("orphans", "forget"), ("events", "append")]
POINTS = [(part, method, after) for part, method in DYING for after in (False, True)]


def part_of(system: System, name: str) -> Any:
    return system.services.ec2 if name == "ec2" else getattr(system.services.state, name)


@pytest.mark.parametrize(
    ("part", "method", "after"),
    POINTS,
    ids=[f"{'after' if after else 'before'}-{method}" for _, method, after in POINTS],
)
def test_a_worker_dies_between_deletes(fleet: System, part: str, method: str, *, after: bool) -> None:
    orphans = left(fleet, 5)
    collect(fleet)
    fleet.later(GRACE + 1)
    fleet.dies(part_of(fleet, part), method, after=after, number=3)
    with pytest.raises(pumped.Killed):
        collect(fleet)
    assert 2 <= len(set(orphans) - there(fleet)) <= 3
    fleet.services = fleet.process()
    fleet.settle(within_seconds=60)
    assert not there(fleet) & set(orphans)
    effects = [call for call in fleet.ec2.calls("DeleteNetworkInterface") if call.effect]
    assert len(effects) == 5
    assert fleet.services.state.summary.read(()).work[WorkKind.FLEET].pending_count == 0


@pytest.mark.parametrize(("part", "method"), [("ec2", "unattached_interfaces"), ("orphans", "note_unattached")])
def test_a_worker_dies_while_it_lists(fleet: System, part: str, method: str) -> None:
    (orphan,) = left(fleet)
    fleet.dies(part_of(fleet, part), method, after=True)
    with pytest.raises(pumped.Killed):
        collect(fleet)
    fleet.services = fleet.process()
    fleet.settle(within_seconds=GRACE + 60)
    assert deletes(fleet) == [orphan]


def test_two_collectors_at_once(fleet: System) -> None:
    orphans = left(fleet, 3)
    collect(fleet)
    fleet.later(GRACE + 1)
    other, real, reports = fleet.process(), fleet.services.ec2.delete_interface, []

    def slow(interface_id: Any) -> None:
        reports.append(collect(fleet, other))
        real(interface_id)

    fleet.services.ec2.delete_interface = slow
    assert sorted(collect(fleet)["deleted"]) == sorted(orphans)
    assert reports == [{"skipped": "another worker makes this pass already"}] * 3
    assert sorted(deletes(fleet)) == sorted(orphans)


def test_b19_a_worker_that_lost_its_claim_deletes_nothing_more(fleet: System) -> None:
    """A stops for twice its lease within the first delete; B does the rest, A nothing more."""
    orphans = left(fleet, 4)
    collect(fleet)
    fleet.later(GRACE + 1)
    other, real, reports = fleet.process(), fleet.services.ec2.delete_interface, []

    def slow(interface_id: Any) -> None:
        real(interface_id)
        fleet.later(2 * (pumped.LEASE_SECONDS + REMOVED_WAIT))
        reports.append(collect(fleet, other))

    fleet.services.ec2.delete_interface = slow
    first = collect(fleet)
    assert "claim ran out" in first["stopped"]
    assert len(first["deleted"]) == 1
    assert len(reports[0]["deleted"]) == 3
    assert sorted(deletes(fleet)) == sorted(orphans)
    assert not there(fleet) & set(orphans)


def test_b19_a_worker_that_lost_its_claim_while_it_listed_deletes_nothing(fleet: System) -> None:
    orphans = left(fleet, 2)
    collect(fleet)
    fleet.later(GRACE + 1)
    other, real, reports = fleet.process(), fleet.services.ec2.unattached_interfaces, []

    def slow(*arguments: Any) -> Any:
        listed = real(*arguments)
        fleet.later(pumped.LEASE_SECONDS + 1)
        reports.append(collect(fleet, other))
        return listed

    fleet.services.ec2.unattached_interfaces = slow
    assert "claim" in collect(fleet)["stopped"]
    assert sorted(reports[0]["deleted"]) == sorted(orphans)
    assert sorted(deletes(fleet)) == sorted(orphans)


def test_a_long_pass_leaves_the_rest_to_the_next(fleet: System, monkeypatch: pytest.MonkeyPatch) -> None:
    orphans = left(fleet, 3)
    collect(fleet)
    fleet.later(GRACE + 1)
    monkeypatch.setattr("eni_tasks.services.collect_orphans.DEADLINE_SECONDS", -1.0)
    report = collect(fleet)
    assert (len(report["deleted"]), set(report["waiting"].values())) == (1, {0.0})
    fleet.settle(within_seconds=100)
    assert sorted(deletes(fleet)) == sorted(orphans)


def test_while_paused_nothing_is_deleted(fleet: System) -> None:
    (orphan,) = left(fleet)
    collect(fleet)
    fleet.later(GRACE + 1)
    fleet.services.state.limiter.pause("anna", "looking into it")
    report = collect(fleet)
    assert (report["deleted"], report["waiting"]) == ([], {orphan: 0.0})
    assert "paused by anna" in report["stopped"]
    assert fleet.mutations() == {}
    fleet.services.state.limiter.resume()
    fleet.settle(within_seconds=40)
    assert deletes(fleet) == [orphan]


@pytest.mark.parametrize(
    ("code", "status", "stops"),
    [
        pytest.param("RequestLimitExceeded", 503, True, id="throttled"),
        pytest.param("UnauthorizedOperation", 403, True, id="not-allowed"),
        pytest.param("ServiceUnavailable", 503, False, id="B03-unclear"),
        pytest.param("OperationNotPermitted", 400, False, id="this-one-never"),
    ],
)
def test_a_refused_delete(fleet: System, code: str, status: int, *, stops: bool) -> None:
    """Trouble of the account ends the pass; one interface's own does not keep the others."""
    orphans = sorted(left(fleet, 3))
    collect(fleet)
    fleet.later(GRACE + 1)
    fault = Fault(action="DeleteNetworkInterface", code=code, status=status, resource=orphans[0], times=1)
    fleet.ec2.add_faults([fault])
    report = collect(fleet)
    assert report["deleted"] == ([] if stops else orphans[1:])
    assert code in (report["stopped"] if stops else report["kept"][orphans[0]])
    # The refused one is tried again in the next pass, after all others.
    assert set(fleet.services.state.orphans.seen()) == (set(orphans) if stops else {orphans[0]})
    for _ in range(3):
        fleet.later(GRACE + 1)
        fleet.services.work.collect_orphans()
        fleet.pump()
    assert not there(fleet) & set(orphans)


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation"])
def test_a_listing_that_fails_means_nothing(fleet: System, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page was good: what it showed isn't acted upon, and nothing that was remembered is lost."""
    monkeypatch.setattr(reads, "PAGE", 5)
    orphans = left(fleet, 8)
    collect(fleet)
    fleet.later(GRACE + 1)
    # The client of reads tries again by itself: refused for as long as it does.
    fleet.ec2.add_faults([Fault(action="DescribeNetworkInterfaces", code=code, status=503, skip=1, times=None)])
    assert code in collect(fleet)["failed"]
    assert deletes(fleet) == []
    fleet.ec2.clear_faults()
    fleet.settle(within_seconds=40)
    assert sorted(deletes(fleet)) == sorted(orphans)


def test_routine_work_leaves_the_last_tokens(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = {"DeleteNetworkInterface": (20.0, 0.01)}
    with pumped.running(redis_url, tmp_path, monkeypatch, rate_limits=bucket) as system:
        system.add_node()
        system.settle()
        left(system, 20)
        collect(system)
        system.later(GRACE + 1)
        report = collect(system)
        assert len(report["deleted"]) == 19
        assert "no token is left for DeleteNetworkInterface" in report["stopped"]
