"""`doctor` against servers that lack something: each lack is named, with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis_servers

if TYPE_CHECKING:
    from commands import Commands
    from pumped import System

# Nobody works here: these are so in every test.
# No worker runs, and no watcher; of that one the system's last read tells for another minute.
ALWAYS, SOMETIMES = {"ec2", "apiserver", "resync"}, {"ticks"}


@pytest.fixture(autouse=True)
def _quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eni_tasks.tasks.messages.CeleryWorkers.__init__.__defaults__", (0.1,))


def troubles(cli: Commands) -> dict[str, dict[str, Any]]:
    answer = cli.json("doctor", code=1)
    found = {each["what"]: each for each in answer["findings"] if each["verdict"] == "trouble"}
    assert len(found) == answer["trouble_count"]
    assert found.keys() >= ALWAYS
    assert all(each["advice"] for each in found.values())
    return {what: each for what, each in found.items() if what not in ALWAYS | SOMETIMES}


def test_without_our_processes_all_else_is_fine(system: System, cli: Commands) -> None:
    system.add_node(eni={"first-interface-index": 1})
    system.settle()
    before, calls = system.interfaces, system.mutations()
    system.fresh()
    assert troubles(cli) == {}
    system.later(70)  # longer than the period of reads
    assert before == system.interfaces
    assert calls
    text = cli("doctor", code=1)
    assert "trouble\tqueues\tec2\tNo worker of this queue answered; messages that wait: 0." in text
    assert "Start `eni-tasks worker --queue ec2`, or scale its Deployment up." in text
    assert text.splitlines()[-1].endswith("4 in trouble.")


@pytest.mark.parametrize("action", ["DescribeSubnets", "AssignPrivateIpAddresses", "AttachNetworkInterface"])
def test_a_missing_ec2_right_is_named(system: System, cli: Commands, action: str) -> None:
    system.add_node(eni={"first-interface-index": 1})
    system.settle()
    system.ec2.set_knobs(denied_actions=[action])
    assert troubles(cli).keys() == {f"ec2:{action}"}


def test_a_missing_right_at_the_api_server_is_named(system: System, cli: Commands) -> None:
    system.kube.knobs.denied = ["patch ciliumnodes/status"]
    assert troubles(cli).keys() == {"patch ciliumnodes/status"}


def test_nodes_that_claim_one_instance_are_named(system: System, cli: Commands) -> None:
    instance = system.add_node("older")
    system.settle()
    system.add_node("impostor", instance=instance)
    system.ingest()
    found = troubles(cli)
    assert found.keys() == {instance.id}
    assert "It belongs to older, " in found[instance.id]["message"]
    assert "impostor" in found[instance.id]["message"]


def test_a_server_that_evicts_is_named(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    with redis_servers.running(options=("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")) as url:
        monkeypatch.setenv("ENI_TASKS_REDIS_URL", url)
        assert troubles(cli).keys() == {"eviction"}


def test_no_redis_stops_only_what_needs_it(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", "redis://127.0.0.1:1/0")
    answer = cli.json("doctor", code=1)
    found = {each["what"] for each in answer["findings"] if each["verdict"] == "trouble"}
    assert found == {"reachable"}
    assert {each["area"] for each in answer["findings"]} == {"redis", "api server", "aws"}


def test_a_user_who_may_not_ask_gets_the_reason(system: System, cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    with redis_servers.running() as url, redis.Redis.from_url(url) as admin:
        admin.acl_setuser(
            "eni", enabled=True, passwords=["+pw"], commands=["+@all", "-info"], keys=["*"], channels=["*"]
        )
        monkeypatch.setenv("ENI_TASKS_REDIS_URL", url.replace("://", "://eni:pw@"))
        assert troubles(cli) == {}
        findings = cli.json("doctor", code=1)["findings"]
        unknown = [each for each in findings if each["area"] == "redis" and each["advice"]]
        assert {each["what"] for each in unknown} == {"version", "eviction"}
