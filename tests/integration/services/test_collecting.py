"""Interfaces that were left behind, collected by the task as it runs in a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pumped_world
import pytest

from eni_tasks.adapters.ec2 import reads
from eni_tasks.domain.tags import ownership
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.ports.work import WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.services.dispatch import ORPHANS
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import TASK_QUEUES

if TYPE_CHECKING:
    from pathlib import Path

    from pumped import System

    from eni_tasks.bootstrap import Services

NODE = NodeName("node")
GRACE = 300.0
REMOVED_WAIT = pumped_world.TIMEOUT_SECONDS + 5
PODS = {"first-interface-index": 1}


def collect(system: System, services: Services | None = None, **arguments: Any) -> dict[str, Any]:
    """Run `eni.collect_orphans` as a worker does."""
    services = services or system.services
    app = make_app(services.settings)
    app._services = services
    report: dict[str, Any] = app.tasks["eni.collect_orphans"](**arguments)
    return report


def left(system: System, count: int = 1, *, instance: str = "i-0123", **options: Any) -> list[str]:
    """Put unattached interfaces of ours there."""
    options = {"tags": ownership(system.cluster), "description": f"Cilium-CNI ({instance})"} | options
    subnet = options.pop("subnet", system.built.pod_subnets["a"])
    return [system.ec2.add_interface(subnet, **options).id for _ in range(count)]


def there(system: System) -> set[str]:
    return {each.id for each in system.ec2.view().interfaces}


def deletes(system: System) -> list[str]:
    """The interfaces that a delete of ours took away, one entry per effect."""
    calls = system.ec2.calls("DeleteNetworkInterface")
    return [call.parameters["NetworkInterfaceId"] for call in calls if call.code == "OK"]


@pytest.fixture
def fleet(system: System) -> System:
    """A fleet that is at size: its VPC is known."""
    system.add_node()
    system.settle()
    system.fresh()
    return system


# -- two passes and the grace ------------------------------------------------------------------------
def test_b03_seen_on_one_pass_and_deleted_on_a_later_one(fleet: System) -> None:
    (orphan,) = left(fleet)
    assert collect(fleet) == {"found": 1, "deleted": [], "waiting": {orphan: GRACE}, "kept": {}}
    fleet.later(GRACE + 1)
    assert collect(fleet) == {"found": 1, "deleted": [orphan], "waiting": {}, "kept": {}}
    assert deletes(fleet) == [orphan]
    assert collect(fleet) == {"found": 0, "deleted": [], "waiting": {}, "kept": {}}
    assert fleet.services.meter.drain()["orphans_deleted_total", "", ()] == 1
    (event,) = [e for e in fleet.services.store.events(after="0", limit=100) if e.what == "DeleteNetworkInterface"]
    assert event.fields == {
        "interface": orphan,
        "subnet": fleet.built.pod_subnets["a"],
        "instance": "i-0123",
        "why": "orphan",
    }


def test_b03_the_way_back_failed_and_nobody_came_back(system: System) -> None:
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
    assert system.view().ready
    (orphan,) = system.ec2.leftovers(ownership(system.cluster))
    assert collect(system)["deleted"] == []
    system.later(GRACE + 1)
    assert collect(system)["deleted"] == [orphan.id]
    assert len(system.interfaces(instance)) == 2
    assert system.clean()


@pytest.mark.parametrize("unlisted", [False, True], ids=["listed-late", "not-listed"])
def test_b03_attached_between_the_passes(fleet: System, caplog: pytest.LogCaptureFixture, *, unlisted: bool) -> None:
    """No delete has an effect, and nobody is alarmed; with a late read EC2 is asked, and refuses."""
    (orphan,) = left(fleet)
    collect(fleet)
    fleet.later(GRACE + 1)
    fleet.ec2.set_knobs(read_lag_seconds=0 if unlisted else 60)
    instance = fleet.launch()
    fleet.services.ec2.attach_interface(orphan, instance.id, 1)
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
    fleet.services.ec2.detach_interface(fleet.interfaces(instance)[1].attachment.id)
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
        assert collect(system, collector)["kept"] == {interface.id: "in the making for node node"}
        system.later(GRACE + 1)
    assert deletes(system) == []
    system.settle(collector, within_seconds=300)
    assert system.view().ready
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
    fleet.services.dispatch.collect_orphans()
    fleet.settle(within_seconds=GRACE + 60)
    assert len(deletes(fleet)) == 30
    assert fleet.services.work.backlog(WorkKind.REFRESH).pending_count == 0


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
            assert system.services.work.backlog(WorkKind.REFRESH).pending_count == 0
        finally:
            system.redis.delete(*system.redis.scan_iter("{eni:default}*"))


def test_before_the_first_read_nothing_is_looked_for(system: System) -> None:
    left(system)
    assert "no VPC of a node is known yet" in collect(system)["refused"]
    assert system.reads() == {}


# -- removed nodes -----------------------------------------------------------------------------------
def remove(system: System) -> None:
    """Delete the object, and let the watcher see it."""
    uid = system.object()["metadata"]["uid"]
    system.kube.store.delete("node")
    system.services.intake.gone(NODE, uid)


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
    system.services.dispatch.collect_orphans()  # the next period
    system.settle(within_seconds=40)
    assert deletes(system) == [second.id]
    assert system.clean()


def test_b07_a_call_was_under_way_when_the_node_went(fleet: System) -> None:
    """The first look finds nothing yet; the second does not wait for the next period."""
    fleet.services.dispatch.collect_orphans([InstanceId("i-0123")])
    fleet.pump()
    (orphan,) = left(fleet)
    fleet.settle(within_seconds=70)
    assert deletes(fleet) == [orphan]


def test_a_node_goes_while_another_orphan_waits(fleet: System) -> None:
    """Its look does not wait with that one; nor is that one's wait cut short."""
    (other,) = left(fleet, instance="i-other")
    fleet.services.dispatch.collect_orphans()
    fleet.pump()
    (orphan,) = left(fleet)
    fleet.services.dispatch.collect_orphans([InstanceId("i-0123")])
    fleet.settle(within_seconds=40)
    assert deletes(fleet) == [orphan]
    fleet.settle(within_seconds=GRACE)
    assert deletes(fleet) == [orphan, other]


def test_many_nodes_go_at_once_and_one_look_is_enough(fleet: System) -> None:
    for number in range(50):
        fleet.services.dispatch.collect_orphans([InstanceId(f"i-{number}")])
    assert fleet.hints.sent == {WorkKind.REFRESH: 1}
    fleet.settle(within_seconds=120)
    assert fleet.reads()["DescribeNetworkInterfaces"] == 2


# -- when things go wrong ----------------------------------------------------------------------------
DYING = [("ec2", "delete_interface"), ("orphan_memory", "forget"), ("store", "event")]
POINTS = [(part, method, after) for part, method in DYING for after in (False, True)]


@pytest.mark.parametrize(
    ("part", "method", "after"),
    POINTS,
    ids=[f"{'after' if after else 'before'}-{method}" for _, method, after in POINTS],
)
def test_a_worker_dies_between_deletes(fleet: System, part: str, method: str, *, after: bool) -> None:
    orphans = left(fleet, 5)
    collect(fleet)
    fleet.later(GRACE + 1)
    fleet.dies(getattr(fleet.services, part), method, after=after, number=3)
    with pytest.raises(pumped.Killed):
        collect(fleet)
    assert 2 <= len(set(orphans) - there(fleet)) <= 3
    fleet.services = fleet.process()
    fleet.settle(within_seconds=60)
    assert not there(fleet) & set(orphans)
    effects = [call for call in fleet.ec2.calls("DeleteNetworkInterface") if call.effect]
    assert len(effects) == 5
    assert fleet.services.work.backlog(WorkKind.REFRESH).pending_count == 0


@pytest.mark.parametrize(("part", "method"), [("ec2", "unattached_interfaces"), ("orphan_memory", "note")])
def test_a_worker_dies_while_it_looks(fleet: System, part: str, method: str) -> None:
    (orphan,) = left(fleet)
    fleet.dies(getattr(fleet.services, part), method, after=True)
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
    assert reports == [{"skipped": "another worker is collecting already"}] * 3
    assert sorted(deletes(fleet)) == sorted(orphans)


def test_b19_who_lost_the_claim_deletes_nothing_more(fleet: System) -> None:
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


def test_b19_who_lost_the_claim_while_it_listed_deletes_nothing(fleet: System) -> None:
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
    monkeypatch.setattr("eni_tasks.services.orphans.DEADLINE_SECONDS", -1.0)
    report = collect(fleet)
    assert (len(report["deleted"]), set(report["waiting"].values())) == (1, {0.0})
    fleet.settle(within_seconds=100)
    assert sorted(deletes(fleet)) == sorted(orphans)


def test_while_paused_nothing_is_deleted(fleet: System) -> None:
    (orphan,) = left(fleet)
    collect(fleet)
    fleet.later(GRACE + 1)
    fleet.services.budgets.pause("anna", "looking into it")
    report = collect(fleet)
    assert (report["deleted"], report["waiting"]) == ([], {orphan: 0.0})
    assert "paused by anna" in report["stopped"]
    assert fleet.mutations() == {}
    fleet.services.budgets.resume()
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
    """Everybody's trouble ends the pass; one interface's own does not keep the others."""
    orphans = sorted(left(fleet, 3))
    collect(fleet)
    fleet.later(GRACE + 1)
    fault = Fault(action="DeleteNetworkInterface", code=code, status=status, resource=orphans[0], times=1)
    fleet.ec2.add_faults([fault])
    report = collect(fleet)
    assert report["deleted"] == ([] if stops else orphans[1:])
    assert code in (report["stopped"] if stops else report["kept"][orphans[0]])
    # The refused one waits anew, so that it stands in nobody's way.
    assert set(fleet.services.orphan_memory.seen()) == (set(orphans) if stops else set())
    for _ in range(3):
        fleet.later(GRACE + 1)
        fleet.services.dispatch.collect_orphans()
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
    with pumped.running(redis_url, tmp_path, monkeypatch, budgets=bucket) as system:
        system.add_node()
        system.settle()
        left(system, 20)
        collect(system)
        system.later(GRACE + 1)
        report = collect(system)
        assert len(report["deleted"]) == 19
        assert "budget of DeleteNetworkInterface is spent" in report["stopped"]


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
    assert [hint for hint in fleet.hints.waiting if hint[1] == ORPHANS] == [(WorkKind.REFRESH, ORPHANS)]


def test_the_hint_names_the_task_on_its_queue() -> None:
    class App:
        sent: list[tuple[str, list[str], str]] = []

        def send_task(self, task: str, args: list[str], queue: str, **_: Any) -> None:
            self.sent.append((task, args, queue))

    CeleryMessages(App()).send(WorkKind.REFRESH, ORPHANS)
    assert App.sent == [("eni.collect_orphans", [], "ec2")]
    assert TASK_QUEUES["eni.collect_orphans"] == {"queue": "ec2"}
