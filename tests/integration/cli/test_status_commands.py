"""`status` and `plan` on a real Redis: what people see while things go well, badly, and on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from commands import Commands
    from pumped import System

NODE = NodeName("node")


def test_a_fleet_at_size_is_no_trouble(system: System, cli: Commands) -> None:
    system.add_node()
    system.add_node("other")
    system.settle()
    fleet = cli.json("status")
    assert [each["node"] for each in fleet["nodes"]] == [NODE, "other"]
    assert (fleet["total_count"], fleet["ready_count"], fleet["reasons"]) == (2, 2, {})
    assert fleet["unread_count"] == 0
    assert fleet["summary"]["subnets"]
    assert cli("status").startswith("2 nodes: 2 at size, 0 in deficit; 0 at capacity, 0 waiting.\n")
    assert "\nother\t" not in cli("status")
    assert "\nother\t" in cli("status", "--all")


def test_a_node_in_back_off_is_shown_with_its_reason(system: System, cli: Commands) -> None:
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", code="InvalidParameterCombination", times=None)])
    system.add_node()
    system.fail_repeatedly()
    fleet = cli.json("status", code=1)
    assert (fleet["in_deficit_count"], fleet["waiting_count"], fleet["reasons"]) == (1, 1, {"deficit": 1})
    assert fleet["nodes"][0]["work"]["state"] == "waiting"
    one = cli.json("status", NODE, code=1)
    assert one["work"]["maintain"]["until"] > one["now"]
    assert one["failures"] >= 1
    assert "InvalidParameterCombination" in one["status"]["trouble"]
    text = cli("status", NODE, code=1)
    # The back-off may just have ended.
    assert "maintain: waits for" in text or "maintain: no worker took it in time" in text
    assert "InvalidParameterCombination" in text


def test_a_node_at_capacity_is_counted_as_such(system: System, cli: Commands) -> None:
    system.add_node(instance_type="t3.micro", ipam={"pre-allocate": 50})
    system.settle(within_seconds=30)
    fleet = cli.json("status")
    assert (fleet["at_capacity_count"], fleet["in_deficit_count"]) == (1, 0)
    assert "that is all it can carry" in cli("status", NODE)
    assert "\nnode\t2\t0\t0\tidle\tat-capacity" in cli("status")


def test_one_node_shows_its_interfaces_and_what_was_done(system: System, cli: Commands) -> None:
    instance = system.add_node(ipam={"pre-allocate": 12})
    system.settle()
    used = system.use(2)
    system.settle()
    one = cli.json("status", NODE)
    truth = system.interfaces(instance)
    assert [(each["id"], each["device_index"]) for each in one["interfaces"]] == [
        (each.id, index) for index, each in enumerate(truth)
    ]
    assert [sorted(each["addresses"]) for each in one["interfaces"]] == [sorted(each.addresses) for each in truth]
    assert sum(each["used"] for each in one["interfaces"]) == len(used)
    assert {event["what"] for event in one["events"]} == {"AssignPrivateIpAddresses", "CreateNetworkInterface"}
    assert one["facts_at"] > 0
    assert one["work"] == {}


def test_an_interface_that_is_being_created_is_shown_with_its_step(system: System, cli: Commands) -> None:
    system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    system.dies(system.services.ec2, "attach_interface", after=False)
    with pytest.raises(pumped.Killed):
        system.settle()
    assert cli.json("status", code=1)["creating"] == [NODE]
    assert "The journal is at step attaching of creating eni-" in cli("status", NODE, code=1)
    assert "First: continue creating an interface" in cli("plan", NODE)
    system.redis.hset(system._keys.journal, NODE, b"{}")
    assert "can't be decoded, so no worker continues: {}" in cli.json("status", NODE, code=1)["journal"]


@pytest.mark.parametrize("kind", [WorkKind.MAINTAIN, WorkKind.PUBLISH])
def test_work_under_way_is_shown_until_its_lease_ends(system: System, cli: Commands, kind: WorkKind) -> None:
    system.add_node()
    system.settle()
    assert system.services.state.queue.claim(kind, NODE)
    assert cli.json("status", NODE)["work"][kind]["state"] == "running"
    assert cli.json("status")["nodes"][0]["work"]["state"] == "running"
    system.later(pumped.LEASE_SECONDS + 1)
    assert cli.json("status", NODE)["work"][kind]["state"] == "overdue"
    system.services.state.queue.enqueue(kind, [(NODE, 1)])
    assert cli.json("status", NODE)["work"][kind]["state"] == "queued"


def test_an_object_that_cannot_be_understood_is_shown(system: System, cli: Commands) -> None:
    system.add_node(ipam={"pre-allocate": 10**15})
    system.settle()
    one = cli.json("status", NODE, code=1)
    assert one["status"]["reason"] == "object-not-understood"
    assert "pre-allocate" in cli("status", NODE, code=1)
    assert "pre-allocate" in cli.run("plan", NODE, code=1).stderr
    assert cli.json("status", code=1)["reasons"] == {"object-not-understood": 1}


def test_an_instance_never_read(system: System, cli: Commands) -> None:
    system.add_node()
    system.ingest()
    assert cli.json("status", code=1)["unread_count"] == 1
    text = cli("status", NODE, code=1)
    assert "Facts: never read." in text
    assert "the instance was not read yet" in text
    assert "EC2 was not read yet" in cli("status", code=1)


# -- plan --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("first_index", "words"),
    [(0, "Next: assign 8 addresses to eni-"), (1, "Next: create an interface in subnet-")],
    ids=["assign", "create"],
)
def test_a_plan_is_explained_and_not_done(system: System, cli: Commands, first_index: int, words: str) -> None:
    system.add_node(eni={"first-interface-index": first_index})
    system.settle_reads()
    assert words in cli("plan", NODE)
    assert cli.json("plan", NODE)["reason"] == "deficit"
    assert system.mutations() == {}


def test_a_plan_that_is_blocked_is_trouble(system: System, cli: Commands) -> None:
    system.add_node(eni={"subnet-ids": ["subnet-0"], "first-interface-index": 1})
    system.settle()
    assert "Next: nothing (subnet-selector-matches-nothing)." in cli("plan", NODE, code=1)


# -- settings ----------------------------------------------------------------------------------
def test_settings_are_shown_as_they_would_be_given(
    system: System, cli: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENI_TASKS_ENI_TAGS", "team=net work, a=b")
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", "redis://me:hidden@127.0.0.1:1/0")
    lines = cli("settings").splitlines()
    assert f"ENI_TASKS_CLUSTER={system.cluster}" in lines
    assert "ENI_TASKS_ENI_TAGS='team=net work,a=b'" in lines
    assert "ENI_TASKS_REDIS_URL='redis://me:****@127.0.0.1:1/0'" in lines
    assert "ENI_TASKS_SUBNET_IDS=" in lines
    assert cli.json("settings")["ENI_TASKS_ENI_TAGS"] == "team=net work,a=b"
