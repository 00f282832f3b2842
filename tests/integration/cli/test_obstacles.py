"""`plan` names what stands in the way of the step that it shows, and says so in its exit code."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pumped
import pytest

from eni_tasks.model.ec2_actions import AWS_RATE_LIMITS
from eni_tasks.model.network import NodeName
from eni_tasks.model.work import WorkKind
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands import Commands
    from pumped import System

NODE = NodeName("node")
ASSIGN, CREATE = "AssignPrivateIpAddresses", "CreateNetworkInterface"


def ready_to_assign(system: System, **spec: Any) -> None:
    system.add_node(**spec)
    system.settle_reads()


def pause(system: System) -> None:
    system.services.admin.pause("Ada", "a subnet is being moved.")


def stop(system: System) -> None:
    system.services.state.limiter.open_breaker(ASSIGN, "UnauthorizedOperation: You may not.", 60)


def use_up(system: System) -> None:
    now_ms = round(system.services.state.now() * 1000)
    key = system._keys.bucket(ASSIGN)
    system.redis.hset(key, mapping={"tokens": -100, "at": now_ms})


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (pause, "In the way: Mutations are paused by Ada: a subnet is being moved. `eni-tasks resume` lets"),
        (stop, f"In the way: {ASSIGN} is stopped for all workers: UnauthorizedOperation: You may not. It is probed in"),
        (use_up, f"In the way: No token is left for {ASSIGN}: the rate limit lets this node call it in "),
    ],
    ids=["pause", "breaker", "rate-limit"],
)
def test_what_holds_for_all_nodes(system: System, cli: Commands, trouble: Callable[[System], None], words: str) -> None:
    ready_to_assign(system)
    assert "In the way" not in cli("plan", NODE)
    assert cli.json("plan", NODE)["obstacles"] == []
    trouble(system)
    text = cli("plan", NODE, code=1)
    assert "Next: assign 8 addresses to eni-" in text
    assert words in text
    (said,) = cli.json("plan", NODE, code=1)["obstacles"]
    assert words.removeprefix("In the way: ") in said


def test_tokens_are_left_as_acquire_counts_them(system: System, cli: Commands) -> None:
    """An empty node may take all but the last fiftieth."""
    ready_to_assign(system)
    kept_back = AWS_RATE_LIMITS[ASSIGN][0] // 50
    now_ms = round(system.services.state.now() * 1000)
    # Refilled meanwhile by less than the half token that is missing, or that is too much.
    for tokens, code in ((kept_back + 1.2, 0), (kept_back - 30, 1)):
        system.redis.hset(system._keys.bucket(ASSIGN), mapping={"tokens": tokens, "at": now_ms})
        assert len(cli.json("plan", NODE, code=code)["obstacles"]) == code


def test_only_the_calls_of_the_next_step_count(system: System, cli: Commands) -> None:
    ready_to_assign(system)
    system.services.state.limiter.open_breaker(CREATE, "quota", 60)
    assert "In the way" not in cli("plan", NODE)
    system.add_node("other", eni={"first-interface-index": 1})
    system.settle_reads()
    assert f"In the way: {CREATE} is stopped" in cli("plan", "other", code=1)


def test_the_steps_of_a_creation_that_is_under_way_count(system: System, cli: Commands) -> None:
    ready_to_assign(system, eni={"first-interface-index": 1})
    system.dies(system.services.ec2, "attach_interface", after=False)
    with pytest.raises(pumped.Killed):
        system.settle()
    assert cli.json("plan", NODE)["creating"] is True
    system.services.state.limiter.open_breaker("AttachNetworkInterface", "quota", 60)
    assert "In the way: AttachNetworkInterface is stopped" in cli("plan", NODE, code=1)
    system.redis.hset(system._keys.journal, NODE, b"{}")
    assert "can't be decoded, so no worker continues" in cli("plan", NODE, code=1)
    assert f"eni-tasks unlock {NODE} --delete-journal" in cli("plan", NODE, code=1)


def test_a_back_off_is_in_the_way(system: System, cli: Commands) -> None:
    system.ec2.add_faults([Fault(action=ASSIGN, code="InvalidParameterCombination", times=None)])
    system.add_node()
    system.fail_repeatedly()
    text = cli("plan", NODE, code=1)
    assert "maintain: waits for" in text
    assert "In the way: The maintain work waits for" in text
    assert f"`eni-tasks maintain {NODE}` ends the wait." in text
    assert cli.json("plan", NODE, code=1)["work"]["maintain"]["state"] == "waiting"


@pytest.mark.parametrize("kind", [WorkKind.MAINTAIN, WorkKind.PUBLISH])
def test_work_that_no_worker_begins_is_in_the_way(system: System, cli: Commands, kind: WorkKind) -> None:
    system.add_node()
    system.settle()
    system.services.state.queue.enqueue(kind, [(NODE, 1)])
    assert f"{kind}: a message was sent" in cli("plan", NODE)
    for _ in range(3):
        system.later(20.5)
        system.services.state.queue.requeue_overdue(kind, 10)
    text = cli("plan", NODE, code=1)
    assert f"In the way: The {kind} work has been due for 6" in text
    assert "no worker has begun it" in text
    assert system.services.state.queue.claim(kind, NODE)
    assert "In the way" not in cli("plan", NODE)


# -- instances that EC2 does not know ------------------------------------------------------------
@pytest.fixture
def _quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eni_tasks.tasks.messages.CeleryWorkers.__init__.__defaults__", (0.1,))


@pytest.mark.usefixtures("_quick_answers")
def test_doctor_names_nodes_whose_instance_ec2_does_not_know(system: System, cli: Commands) -> None:
    def finding() -> dict[str, Any]:
        (found,) = [each for each in cli.json("doctor", code=1)["findings"] if each["what"] == "known to EC2"]
        return found

    system.add_node()
    system.add_node("other")
    system.settle()
    system.later(60)
    system.resync()
    assert (finding()["verdict"], "No instance is missing" in finding()["message"]) == ("ok", True)
    for name, instance in (("ghost", "i-0badbadbadbadbad0"), ("ignored", "i-0badbadbadbadbad1")):
        metadata = {"annotations": {"ipam.cilium.io/ignore": "true"}} if name == "ignored" else {}
        head = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode"}
        spec = {"instance-id": instance, "eni": {}, "ipam": {}}
        system.kube.store.create({**head, "metadata": {"name": name, **metadata}, "spec": spec})
    system.settle()
    system.redis.hset(system._keys.switches, "read_at", round(time.time() * 1000))
    assert finding()["verdict"] == "ok", "they were created after the last complete read began"
    system.resync()
    found = finding()
    assert found["verdict"] == "trouble"
    assert "1 node: ghost (i-0badbadbadbadbad0). They get nothing." in found["message"]
    assert "delete its CiliumNode" in found["advice"]


def test_what_is_missing_beside_the_pool_is_told(system: System, cli: Commands) -> None:
    system.add_node(ipam={"static-ip-tags": {"pool": "egress"}})
    system.settle()
    text = cli("plan", NODE, code=1)
    assert "nothing is needed" in text
    assert "asks for a static address, an Elastic IP with the tags pool=egress: set ENI_TASKS_STATIC_ADDRESSES" in text
    assert "Next: nothing" in text
    assert cli.json("plan", NODE, code=1)["troubles"]
    assert "ENI_TASKS_STATIC_ADDRESSES" in cli("status", NODE, code=1)
