"""Interfaces that were left behind, collected by the task as it runs in a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest
from collecting_under_test import GRACE, PODS, collect, deletes, left, there

from eni_tasks.adapters.ec2 import reads
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import ownership
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import TASK_QUEUES

if TYPE_CHECKING:
    from pathlib import Path

    from pumped import System


# -- two passes and the grace ------------------------------------------------------------------------
def test_b03_seen_on_one_pass_and_deleted_on_a_later_one(fleet: System) -> None:
    (orphan,) = left(fleet)
    assert collect(fleet) == {"found": 1, "deleted": [], "waiting": {orphan: GRACE}, "kept": {}}
    fleet.later(GRACE + 1)
    assert collect(fleet) == {"found": 1, "deleted": [orphan], "waiting": {}, "kept": {}}
    assert deletes(fleet) == [orphan]
    assert collect(fleet) == {"found": 0, "deleted": [], "waiting": {}, "kept": {}}
    assert fleet.services.counters.drain()["orphans_deleted_total", "", ()] == 1
    (event,) = [e for e in fleet.services.state.events.after("0", limit=100) if e.what == "DeleteNetworkInterface"]
    assert event.fields == {
        "interface": orphan,
        "subnet": fleet.built.pod_subnets["a"],
        "instance": "i-0123",
        "why": "orphan",
    }


def test_b03_the_way_back_failed_and_no_worker_resumed(system: System) -> None:
    """The journal is gone with Redis' content: only the tags tell."""
    instance = system.add_node(eni=PODS)
    system.ec2.add_faults(
        [
            Fault(action="AttachNetworkInterface", code="AttachmentLimitExceeded"),
            Fault(action="DeleteNetworkInterface", code="ServiceUnavailable", status=503, times=None),
        ]
    )
    system.settle()
    system.empty_redis()
    system.ec2.clear_faults()
    system.settle()
    assert system.status().ready
    (orphan,) = system.ec2.leftovers(ownership(system.cluster))
    assert collect(system)["deleted"] == []
    system.later(GRACE + 1)
    assert collect(system)["deleted"] == [orphan.id]
    assert len(system.interfaces(instance)) == 2
    assert system.clean()


@pytest.mark.parametrize("unlisted", [False, True], ids=["listed-late", "not-listed"])
def test_b03_attached_between_the_passes(fleet: System, caplog: pytest.LogCaptureFixture, *, unlisted: bool) -> None:
    """No delete has an effect, and nothing is alarming; with a late read EC2 is asked, and refuses."""
    (orphan,) = left(fleet)
    collect(fleet)
    fleet.later(GRACE + 1)
    fleet.ec2.set_knobs(read_lag_seconds=0 if unlisted else 60)
    instance = fleet.launch()
    fleet.services.ec2.attach_interface(orphan, instance.id, device_index=1, network_card=0)
    fleet.fresh()
    report = collect(fleet)
    assert report["deleted"] == []
    assert report["kept"] == ({} if unlisted else {orphan: "it is in use after all"})
    assert deletes(fleet) == []
    assert [record for record in caplog.records if record.levelname != "INFO"] == []
    fleet.later(61)
    assert collect(fleet)["found"] == 0
    assert orphan in there(fleet)
    # Taken off again, it is seen for the first time.
    fleet.services.ec2._calls.mutate("DetachNetworkInterface", AttachmentId=fleet.interfaces(instance)[1].attachment.id)
    fleet.later(61)
    assert collect(fleet)["waiting"] == {orphan: GRACE}


@pytest.mark.parametrize(("age_seconds", "deleted"), [(20, 0), (301, 1)])
def test_b04_the_grace_comes_before_a_second_pass(fleet: System, age_seconds: int, deleted: int) -> None:
    left(fleet)
    collect(fleet)
    fleet.later(age_seconds)
    assert len(collect(fleet)["deleted"]) == deleted


@pytest.mark.parametrize("made", [False, True], ids=["perhaps-made", "made"])
def test_b04_what_a_journal_speaks_of_is_left_alone(system: System, *, made: bool) -> None:
    """The worker dies after Create; the journal says either what was wanted, or what was made."""
    system.add_node(eni=PODS)
    system.settle_reads()
    dying = "attach_interface" if made else "create_interface"
    system.dies(system.services.ec2, dying, after=not made)
    with pytest.raises(pumped.Killed):
        system.settle(within_seconds=5)
    (interface,) = system.ec2.leftovers(ownership(system.cluster))
    collector = system.process()
    for _ in range(3):
        assert collect(system, collector)["kept"] == {interface.id: "being created for node node"}
        system.later(GRACE + 1)
    assert deletes(system) == []
    system.settle(collector, within_seconds=300)
    assert system.status().ready
    assert interface.id in set(system.pool().values())
    assert system.clean()


def test_b04_a_journal_whose_node_is_gone_protects_nothing(fleet: System) -> None:
    """A worker may have written it in the moment in which the node was dropped."""
    (orphan,) = left(fleet)
    fleet.redis.hset(fleet._keys.journal, "gone", f'{{"step":"created","interface":{{"id":"{orphan}"}}}}')
    collect(fleet)
    fleet.later(GRACE + 1)
    assert collect(fleet)["deleted"] == [orphan]


# -- how many, and whose -----------------------------------------------------------------------------
def test_b05_25_25_and_10_whatever_the_pages(fleet: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subnets are selected by tags that interfaces don't carry; the limit is cut within a page."""
    monkeypatch.setattr(reads, "PAGE", 24)
    tagged = fleet.built.world.add_subnet(fleet.built.vpc_id, "a", "10.0.208.0/24", {"pool": "x"}).id
    orphans = left(fleet, 60, subnet=tagged)
    collect(fleet)
    fleet.later(GRACE + 1)
    counts = []
    for _ in range(4):
        fleet.fresh()
        counts.append(len(collect(fleet)["deleted"]))
        assert len(deletes(fleet)) == counts[-1]
    assert counts == [25, 25, 10, 0]
    assert not there(fleet) & set(orphans)


def test_b05_the_rest_follows_without_waiting_for_the_next_period(fleet: System) -> None:
    left(fleet, 30)
    fleet.services.work.collect_orphans()
    fleet.settle(within_seconds=GRACE + 60)
    assert len(deletes(fleet)) == 30
    assert fleet.services.state.summary.read(()).work[WorkKind.FLEET].pending_count == 0


def test_b06_only_what_is_fully_ours(fleet: System) -> None:
    other_vpc = fleet.built.world.add_vpc("10.9.0.0/16")
    elsewhere = fleet.built.world.add_subnet(other_vpc.id, "a", "10.9.0.0/24").id
    instance = fleet.launch()
    (other_cluster,) = left(fleet, tags=ownership("other"))
    (in_other_vpc,) = left(fleet, subnet=elsewhere)
    (described,) = left(fleet, tags={})
    (half,) = left(fleet, tags={"io.cilium/cluster-name": fleet.cluster})
    (attached,) = left(fleet, instance_id=instance.id)
    (ours,) = left(fleet, tags=ownership(fleet.cluster) | {"team": "net"})
    for _ in range(3):
        collect(fleet)
        fleet.later(GRACE + 1)
    assert deletes(fleet) == [ours]
    assert {other_cluster, in_other_vpc, described, half, attached} <= there(fleet)


@pytest.mark.parametrize("dry_run", [False, True])
def test_b06_a_cluster_without_a_name_deletes_nothing(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool
) -> None:
    with pumped.running(redis_url, tmp_path, monkeypatch, cluster="default") as system:
        try:
            system.add_node()
            system.settle()
            left(system, tags=ownership("default"))
            system.fresh()
            assert "ENI_TASKS_CLUSTER" in collect(system, dry_run=dry_run)["refused"]
            assert system.reads() == system.mutations() == {}
            assert system.services.state.summary.read(()).work[WorkKind.FLEET].pending_count == 0
        finally:
            system.redis.delete(*system.redis.scan_iter("{eni:default}*"))


def test_before_the_first_read_nothing_is_looked_for(system: System) -> None:
    left(system)
    assert "no VPC of a node is known yet" in collect(system)["refused"]
    assert system.reads() == {}


# -- by hand and by the clock ------------------------------------------------------------------------
def test_a_dry_run_says_what_would_be_done_and_does_nothing(fleet: System) -> None:
    (old,) = left(fleet)
    collect(fleet)
    fleet.later(GRACE + 1)
    (new,) = left(fleet)
    keys = sorted(fleet._all_keys())
    report = {"dry_run": True, "found": 2, "would_delete": [old], "waiting": {new: GRACE}, "kept": {}}
    assert collect(fleet, dry_run=True) == report
    assert fleet.mutations() == {}
    assert sorted(fleet._all_keys()) == keys
    assert collect(fleet, dry_run=True) == report


@pytest.mark.parametrize("wrong", ["yes", 1, None, []])
def test_a_wrong_argument_does_nothing(fleet: System, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="dry_run="):
        collect(fleet, dry_run=wrong)
    assert fleet.reads() == fleet.mutations() == {}


def test_the_ticker_starts_a_pass_once_a_period(fleet: System) -> None:
    tickers = [fleet.process().ticker(lambda: None) for _ in range(2)]
    for _ in range(3):
        for ticker in tickers:
            ticker.tick()
    assert [each for each in fleet.messages.waiting if each[1] == Pass.ORPHANS] == [(WorkKind.FLEET, Pass.ORPHANS)]


def test_the_message_names_the_task_on_its_queue() -> None:
    class App:
        sent: list[tuple[str, list[str], str]] = []

        def send_task(self, task: str, args: list[str], queue: str, **_: Any) -> None:
            self.sent.append((task, args, queue))

    CeleryMessages(App()).send(WorkKind.FLEET, Pass.ORPHANS)
    assert App.sent == [("eni.collect_orphans", [], "ec2")]
    assert TASK_QUEUES["eni.collect_orphans"] == {"queue": "ec2"}
