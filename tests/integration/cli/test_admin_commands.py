"""What a person does to the running system, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pumped
import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import WorkKind
from eni_tasks.state.limiter import LIMITS

if TYPE_CHECKING:
    from commands import Commands
    from pumped import System

NODE = NodeName("node")


# -- pause, resume -----------------------------------------------------------------------------
def test_a_pause_stops_mutations_and_nothing_else(system: System, cli: Commands) -> None:
    report = cli.json("pause", "--why", "a subnet is being moved", "--who", "Ada")
    assert (report["paused"], report["who"], report["why"]) == (True, "Ada", "a subnet is being moved")
    system.add_node()
    system.settle()
    assert system.mutations() == {}
    assert system.reads()["DescribeNetworkInterfaces"] == 1
    assert "paused by Ada: a subnet is being moved" in system.status().last_action
    assert "The pause by Ada" in cli("resume")
    system.settle(within_seconds=31)
    assert len(system.pool()) == 8


def test_a_second_pause_names_the_one_that_it_replaces(cli: Commands) -> None:
    cli("pause", "--why", "one", "--who", "Ada")
    assert "replaces the pause by Ada: one" in cli("pause", "--why", "two", "--who", "Bob")
    assert cli.json("resume")["ended"]["who"] == "Bob"
    assert cli("resume") == "Nothing was paused or stopped.\n"


def test_what_trouble_of_the_account_stopped_may_be_tried_again_once_it_is_over(system: System, cli: Commands) -> None:
    system.ec2.set_knobs(denied_actions=["AssignPrivateIpAddresses"])
    system.add_node()
    system.settle()
    assert "AssignPrivateIpAddresses is stopped for all workers: UnauthorizedOperation" in cli("status", code=1)
    cli("maintain", NODE)
    system.messages.waiting.clear()
    system.ec2.set_knobs(denied_actions=[])
    report = cli.json("resume")
    assert (report["closed"], report["ended"]) == (["AssignPrivateIpAddresses"], None)
    system.services.maintain.run(NODE)
    assert system.status().available == 8
    assert "is stopped" not in cli("status", code=1)


def test_a_missing_right_to_read_limits_is_told_and_tried_again_by_hand(system: System, cli: Commands) -> None:
    system.services.state.limiter.open_breaker(LIMITS, "UnauthorizedOperation: no", 60)
    assert "DescribeInstanceTypes is refused: UnauthorizedOperation: no." in cli("status", code=1)
    assert cli.json("resume")["closed"] == [LIMITS]
    assert "is refused" not in cli("status", code=1)


def test_a_read_that_failed_is_told(system: System, cli: Commands) -> None:
    system.services.state.reads.note_failure("DescribeVpcs: AuthFailure: no")
    assert "The last read of EC2 failed: DescribeVpcs: AuthFailure: no." in cli("status", code=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pause"], "Missing option '--why'"),
        (["pause", "--why", "  "], "why is empty"),
        (["pause", "--why", "x" * 301], "why is 301 characters long"),
        (["unlock", "Bad_Name"], "'Bad_Name' is not the name of a node"),
        (["unlock"], "Give a NODE"),
        (["events", "--limit", "-1"], "Invalid value for '--limit'"),
    ],
    ids=["no-why", "empty", "long", "bad-node", "no-node", "negative"],
)
def test_wrong_use(system: System, cli: Commands, arguments: list[str], words: str) -> None:
    assert words in cli.run(*arguments, code=2).stderr
    assert system.services.state.limiter.paused() is None


def test_the_user_is_named_where_no_name_is_given(cli: Commands) -> None:
    assert "@" in cli.json("pause", "--why", "x")["who"]


# -- unlock ------------------------------------------------------------------------------------
def held(system: System, kind: WorkKind = WorkKind.MAINTAIN) -> Any:
    system.add_node()
    system.settle()
    system.messages.waiting.clear()
    return system.services.state.queue.claim(kind, NODE)


@pytest.mark.parametrize(
    ("kind", "queue", "task"),
    [(WorkKind.MAINTAIN, "ec2", "eni.maintain_node"), (WorkKind.PUBLISH, "apiserver", "eni.publish_node")],
    ids=["maintain", "publish"],
)
def test_a_stuck_claim_ends_now_and_the_node_is_sent(
    system: System, cli: Commands, kind: WorkKind, queue: str, task: str
) -> None:
    claim = held(system, kind)
    report = cli.json("unlock", NODE)
    assert list(report["ended"]) == [kind]
    assert 0 < report["ended"][kind] <= pumped.LEASE_SECONDS
    assert cli.sent(queue) == [(task, [NODE])]
    assert system.services.state.queue.renew([claim]) == [claim]  # its holder has lost it
    assert system.services.state.queue.claim(kind, NODE) is not None


def test_nothing_to_unlock_is_no_trouble(system: System, cli: Commands) -> None:
    system.add_node()
    system.settle()
    assert cli.json("unlock", NODE) == {
        "node": NODE,
        "ended": {},
        "journal": None,
        "explanation": ["No worker holds node. If it waits, `eni-tasks maintain node` ends the wait."],
    }
    assert cli.sent("ec2") == []
    assert "no CiliumNode of that name" in cli.run("unlock", "unknown", code=1).stderr


def test_a_mutation_under_way_is_waited_for(system: System, cli: Commands) -> None:
    instance = system.add_node()
    system.settle_reads()
    system.dies(system.services.ec2, "assign_addresses", after=True)
    with pytest.raises(pumped.Killed):
        system.settle()
    report = cli.json("unlock", NODE)
    assert list(report["ended"]) == ["maintain"]
    assert any("A mutation may still be running" in line for line in report["explanation"])
    assert cli.sent("ec2") == []  # not before the call has certainly ended
    system.settle(system.process(), within_seconds=60)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [8]
    assert system.status().ready
    assert system.clean()


def test_a_create_under_way_is_waited_for_no_longer_than_the_lease(system: System, cli: Commands) -> None:
    system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    system.dies(system.services.ec2, "create_interface", after=False)
    with pytest.raises(pumped.Killed):
        system.settle()
    system.later(pumped.LEASE_SECONDS - 5)
    left = cli.json("unlock", NODE)["ended"]["maintain"]
    assert 0 < left <= 5  # a call may take 7 s
    waiting = cli.json("status", NODE, code=1)
    assert waiting["work"]["maintain"]["state"] == "waiting"
    assert waiting["work"]["maintain"]["until"] - waiting["now"] <= 5
    system.settle(system.process(), within_seconds=60)
    assert len([call for call in system.ec2.calls("CreateNetworkInterface") if call.effect]) == 1
    assert system.clean()


def test_the_journal_is_explained_and_left_to_the_next_worker(system: System, cli: Commands) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    system.dies(system.services.ec2, "attach_interface", after=False)
    with pytest.raises(pumped.Killed):
        system.settle()
    report = cli.json("unlock", NODE)
    assert report["journal"] is True
    assert any("journal is at step attaching of creating eni-" in line for line in report["explanation"])
    assert cli.sent("ec2") == []  # the attach that was let through may still be under way
    assert "is intact" in cli.run("unlock", NODE, "--delete-journal", code=2).stderr
    system.settle(system.process(), within_seconds=60)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [0, 8]
    assert system.clean()


def test_an_unreadable_entry_is_deleted_only_on_demand(system: System, cli: Commands) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    system.redis.hset(system._keys.journal, NODE, b'{"step": "dancing"}')
    system.settle()
    assert system.mutations() == {}
    text = cli("unlock", NODE, code=1)
    assert 'can\'t be decoded, so no worker continues: {"step": "dancing"}' in text
    assert "eni-tasks unlock node --delete-journal" in text
    assert system.redis.hget(system._keys.journal, NODE) is not None
    report = cli.json("unlock", NODE, "--delete-journal")
    assert report["deleted"] == '{"step": "dancing"}'
    assert cli.sent("ec2") == [("eni.maintain_node", [NODE])]
    system.services.work.enqueue(WorkKind.MAINTAIN, [(NODE, 0)], ends_wait=True)
    system.later(60)
    system.settle(within_seconds=60)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [0, 8]
    assert "there is nothing to delete" in cli.run("unlock", NODE, "--delete-journal", code=2).stderr


def test_an_entry_that_a_worker_is_writing_stays(system: System) -> None:
    held(system)
    system.redis.hset(system._keys.journal, NODE, b"{}")
    nodes = system.services.state.nodes
    assert nodes.delete_journal(NODE, b"{}") == "held"
    system.later(pumped.LEASE_SECONDS + 1)
    assert nodes.delete_journal(NODE, b"y") == "changed"
    assert nodes.delete_journal(NODE, b"{}") == "done"
    assert nodes.delete_journal(NODE, b"{}") == "changed"


# -- resync ------------------------------------------------------------------------------------
def test_one_instance_is_read_again(system: System, cli: Commands) -> None:
    first = system.add_node()
    system.add_node("other")
    system.settle()
    for named in (NODE, first.id):
        assert cli.json("resync", "--instance", named)["node"] == NODE
    assert cli.sent("resync") == [("eni.refresh_instances", [])]
    system.fresh()
    system.services.refresh.read_requested()
    assert system.reads() == {"DescribeNetworkInterfaces": 1}
    asked = system.ec2.calls("DescribeNetworkInterfaces")[0].parameters
    assert first.id in str(asked)
    assert "no CiliumNode of that name or instance" in cli.run("resync", "-i", "i-0", code=1).stderr


def test_everything_is_read_again(cli: Commands) -> None:
    assert cli.json("resync")["enqueued"] == "eni.refresh_inventory"
    assert cli.sent("resync") == [("eni.refresh_inventory", [])]


# -- orphans -----------------------------------------------------------------------------------
def test_orphans_are_listed_and_left_alone(system: System, cli: Commands) -> None:
    system.add_node()
    system.settle()
    ours = {"io.cilium/cilium-managed": "true", "io.cilium/cluster-name": system.cluster}
    left = system.ec2.add_interface(system.built.pod_subnets["a"], tags=ours)
    assert "Unattached interfaces of this cluster: 1." in cli("orphans", "--dry-run")
    report = cli.json("orphans", "--dry-run")
    assert report["would_delete"] == []
    assert left.id in {**report["waiting"], **report["kept"]}
    assert left.id in {each.id for each in system.ec2.view().interfaces}
    assert cli.sent("resync") == []


def test_a_pass_over_the_orphans_is_enqueued(cli: Commands) -> None:
    assert cli.json("orphans")["enqueued"] == "eni.collect_orphans"
    assert [task for queue in ("ec2", "resync", "apiserver") for task, _ in cli.sent(queue)] == ["eni.collect_orphans"]


def test_orphans_are_not_looked_for_before_the_first_read(cli: Commands) -> None:
    assert "Nothing would be deleted" in cli("orphans", "--dry-run", code=1)


# -- events ------------------------------------------------------------------------------------
def test_events_show_what_was_done_to_which_node(system: System, cli: Commands) -> None:
    system.add_node()
    system.add_node("other", eni={"first-interface-index": 1})
    system.settle()
    cli("pause", "--why", "x", "--who", "Ada")
    lines = [line.split("\t") for line in cli("events").splitlines()]
    assert lines[0] == ["when", "what", "node", "details"]
    assert sorted(line[1:3] for line in lines[1:3]) == [
        ["AssignPrivateIpAddresses", NODE],
        ["CreateNetworkInterface", "other"],
    ]
    assert lines[3][1:] == ["Pause", "", "who=Ada, why=x"]
    assert [event["what"] for event in cli.json("events", "--node", NODE)] == ["AssignPrivateIpAddresses"]
    assert [event["what"] for event in cli.json("events", "--limit", "1")] == ["Pause"]
    assert cli.json("events", "--limit", "0") == []


def test_the_last_events_of_a_node_are_found_behind_many_others(system: System, cli: Commands) -> None:
    for number in range(3):
        system.services.state.events.append("Own", {"node": NODE, "number": number})
    for number in range(2300):
        system.redis.xadd(system._keys.events, {"what": "Other", "node": "other", "number": number})
    assert [event["number"] for event in cli.json("events", "--node", NODE, "--limit", "2")] == ["1", "2"]
    assert [event["number"] for event in cli.json("events", "--limit", "2")] == ["2298", "2299"]
    assert len(cli.json("events", "--limit", "1500")) == 1500
