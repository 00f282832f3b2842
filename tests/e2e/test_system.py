"""The whole system over real processes: what a change costs, what rest costs, and what survives."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from whole import RESYNC_SECONDS, System, running, until

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE_COUNT = 50
PERIODIC_READS = {
    "DescribeNetworkInterfaces": 1,
    "DescribeRouteTables": 1,
    "DescribeSecurityGroups": 1,
    "DescribeSubnets": 1,
    "DescribeVpcs": 1,
}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running() as system:
        system.fleet.add(NODE_COUNT)
        yield system


@pytest.fixture(autouse=True)
def at_rest(system: System) -> None:
    until(system.quiet, "all pools at size, and nothing left to do")


def after_a_periodic_read(system: System) -> None:
    """Wait until one has just ended, so that the next is a whole period away."""
    seen = system.calls().get("DescribeNetworkInterfaces", 0)
    until(lambda: system.calls().get("DescribeNetworkInterfaces", 0) > seen, "the next periodic read")
    until(system.quiet, "the end of the read")


def test_fifty_nodes_are_filled(system: System) -> None:
    assert all(len(system.pool(name)) >= 8 for name in system.fleet.names)
    until(system.flower_is_up, "Flower shows a worker per queue")
    assert system.clean()


def test_what_one_change_costs(system: System) -> None:
    node = system.fleet.names[3]  # an m5.xlarge: there is room on its first interface
    until(system.flower_is_up, "Flower shows a worker per queue")
    after_a_periodic_read(system)
    started, before = time.monotonic(), system.commands()
    time.sleep(2.0)  # the rate of an idle system can only be measured over time
    idle_seconds, idle = time.monotonic() - started, delta(system.commands(), before)
    seen, size = set(system.tasks()), len(system.pool(node))
    system.reset()
    started, before = time.monotonic(), system.commands()
    system.use_more(node, 1)
    until(lambda: len(system.pool(node)) == size + 1, "the pool has grown")
    latency_seconds = time.monotonic() - started

    def runs() -> Counter[str]:
        return Counter(task["name"] for uuid, task in system.tasks().items() if uuid not in seen and task["succeeded"])

    # Flower is asked, not Redis: our own looking must not count.
    until(lambda: runs().keys() >= {"eni.maintain_node", "eni.publish_node"}, "Flower shows the runs")
    seconds, commands = time.monotonic() - started, delta(system.commands(), before)
    until(system.quiet, "nothing is left to do")
    net = {name: count - idle[name] * seconds / idle_seconds for name, count in commands.items()}
    writes = system.writes()
    print(  # noqa: T201 - the figures are what this test is for
        f"\none change on one of {NODE_COUNT} nodes: {latency_seconds * 1000:.0f} ms until the pool had grown\n"
        f"  EC2 calls:      {system.calls()}\n"
        f"  API writes:     status {writes['status']}, spec {writes['']}\n"
        f"  task runs:      {dict(runs())}\n"
        f"  Redis commands: {sum(commands.values())} in {seconds:.1f} s, of them scripts {commands['evalsha']}; "
        f"idle {sum(idle.values()) / idle_seconds:.0f}/s, scripts {idle['evalsha'] / idle_seconds:.0f}/s;\n"
        f"                  net {sum(net.values()):.0f}, scripts {net['evalsha']:.0f}"
    )
    assert system.calls() == {"AssignPrivateIpAddresses": 1}
    assert writes == {"status": 1, "": 1}
    assert runs() == {"eni.maintain_node": 1, "eni.publish_node": 1}


def delta(after: dict[str, int], before: dict[str, int]) -> Counter[str]:
    return Counter({name: count - before.get(name, 0) for name, count in after.items()})


def test_an_idle_fleet_makes_the_periodic_reads_and_nothing_else(system: System) -> None:
    until(system.flower_is_up, "Flower shows a worker per queue")
    after_a_periodic_read(system)
    seen = set(system.tasks())
    system.reset()
    until(lambda: system.calls().get("DescribeNetworkInterfaces"), "the periodic read", seconds=2 * RESYNC_SECONDS)
    until(system.quiet, "its end")
    assert system.calls() == PERIODIC_READS
    assert system.writes() == {"status": 0, "": 0}
    assert set(system.kube.record().counts) <= {"list", "watch"}
    until(lambda: set(system.tasks()) - seen, "Flower shows the run")
    assert {task["name"] for uuid, task in system.tasks().items() if uuid not in seen} == {"eni.refresh_inventory"}


def test_a_worker_that_is_killed_in_mid_work(system: System) -> None:
    system.ec2.set_knobs(latency_seconds={"*": 0.05})
    system.fleet.add(20, ipam={"pre-allocate": 20})
    until(lambda: system.calls().get("AttachNetworkInterface", 0) > 3, "it is in the middle")
    worker = system.sandbox.children.running["ec2"]
    worker.kill()
    worker.wait()
    system.sandbox.start("ec2")
    until(system.quiet, "all pools at size")
    system.ec2.set_knobs(latency_seconds={})
    assert system.clean()


# -- for people --------------------------------------------------------------------------------
def test_status_tells_how_the_fleet_stands(system: System) -> None:
    answer = system.cli("status", "--json")
    assert answer.returncode == 0, answer.stderr
    fleet = json.loads(answer.stdout)
    assert {node["node"] for node in fleet["nodes"]} == set(system.fleet.names)
    assert fleet["ready_count"] == fleet["total_count"]
    one = system.cli("status", system.fleet.names[0])
    assert one.returncode == 0
    assert "nothing is needed" in one.stdout


def test_a_plan_is_told_and_not_done(system: System) -> None:
    answer = system.cli("plan", system.fleet.names[0], "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["reason"] == "at-size"


@pytest.mark.parametrize("command", ["maintain", "publish"])
def test_a_person_can_enqueue_a_run(system: System, command: str) -> None:
    answer = system.cli(command, system.fleet.names[0], "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert (report["node"], report["kind"], report["sent"]) == (system.fleet.names[0], command, 1)


def test_a_person_can_have_everything_read_again(system: System) -> None:
    after_a_periodic_read(system)
    system.reset()
    answer = system.cli("resync", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["enqueued"] == "eni.refresh_inventory"
    until(lambda: system.calls() == PERIODIC_READS, "the read", seconds=RESYNC_SECONDS / 2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["status", "nobody"], 1, "no CiliumNode of that name is known"),
        (["plan", "nobody", "--json"], 1, "no CiliumNode of that name is known"),
        (["maintain", "nobody"], 1, "no CiliumNode of that name is known"),
        (["publish", "x y"], 2, "'x y' is not the name of a node"),
        (["plan"], 2, "Missing argument"),
        (["worker", "--queue", "nowhere"], 2, "No such queue: nowhere"),
        (["flower"], 2, "ENI_TASKS_FLOWER_AUTH"),
    ],
    ids=lambda value: "-".join(value).replace(" ", "_") if isinstance(value, list) else None,
)
def test_wrong_use_is_told(system: System, arguments: list[str], code: int, words: str) -> None:
    answer = system.cli(*arguments)
    assert answer.returncode == code
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


def test_wrong_settings_are_told_at_once(system: System) -> None:
    right = dict(system.sandbox.environment)
    system.sandbox.environment |= {
        "ENI_TASKS_RESYNC_SECONDS": "-3",
        "ENI_TASKS_REDISURL": "x",
        "ENI_TASKS_CLUSTER": "a b",
    }
    try:
        answer = system.cli("status")
    finally:
        system.sandbox.environment = right
    assert answer.returncode == 2
    for name in ("ENI_TASKS_RESYNC_SECONDS", "ENI_TASKS_REDISURL", "ENI_TASKS_CLUSTER"):
        assert name in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('["x y"]', "'x y' is not the name of a node"),
        ('[{"node": 1}]', "is not the name of a node"),
        ("[]", "missing a required argument: 'node'"),
        ('["nobody"]', None),
    ],
    ids=["no-name", "no-text", "nothing", "nobody"],
)
def test_a_task_with_wrong_arguments_fails_alone(system: System, arguments: str, words: str | None) -> None:
    until(system.flower_is_up, "Flower shows a worker per queue")
    system.reset()
    sent = system.celery("call", "eni.maintain_node", "--args", arguments, "--queue", "ec2")
    assert sent.returncode == 0, sent.stderr
    uuid = sent.stdout.split()[-1]

    def ended() -> dict[str, Any] | None:
        task = system.tasks().get(uuid, {})
        return task if task.get("state") in ("SUCCESS", "FAILURE") else None

    task = until(ended, "Flower shows the task's end")
    if words is None:
        assert task["state"] == "SUCCESS"
        assert "no CiliumNode of that name is known" in task["result"]
    else:
        assert task["state"] == "FAILURE"
        assert words in task["exception"]
    node = system.fleet.names[3]
    size = len(system.pool(node))
    system.use_more(node, 1)
    until(lambda: len(system.pool(node)) == size + 1, "others are served on")


# -- bad input ---------------------------------------------------------------------------------
BAD = {
    "no-instance-id": ({"instance-id": ""}, {}, {}, "no-instance-id", "instance id"),
    "malformed-id": ({"instance-id": "*"}, {}, {}, "object-not-understood", "instance-id"),
    "unknown-type": ({}, {"instance-type": "zz9.large"}, {}, "limits-unknown", "zz9.large"),
    "absurd-index": ({}, {"first-interface-index": 10**6}, {}, "at-capacity", "first-interface-index"),
    "absurd-number": ({}, {}, {"pre-allocate": 10**15}, "object-not-understood", "pre-allocate"),
    "no-such-subnet": (
        {},
        {"subnet-ids": ["subnet-0"], "first-interface-index": 1},
        {},
        "subnet-selector-matches-nothing",
        "subnet-0",
    ),
    "no-such-instance": ({"instance-id": "i-0123456789abcdef0"}, {}, {}, "instance-not-read", "i-0123456789abcdef0"),
}


@pytest.fixture
def odd_nodes(system: System) -> Iterator[list[str]]:
    for name, (spec, eni, ipam, _, _) in BAD.items():
        healthy = system.fleet.get(system.fleet.names[0])["spec"]
        instance = system.ec2.launch_instance("m5.large", healthy["eni"]["node-subnet-id"])
        place = {key: healthy["eni"][key] for key in ("instance-type", "vpc-id", "availability-zone", "node-subnet-id")}
        body = {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": name},
            "spec": {"instance-id": instance.id, "eni": place | eni, "ipam": ipam} | spec,
        }
        system.fleet._call("POST", "", body)
    yield list(BAD)
    for name in BAD:
        system.fleet._call("DELETE", f"/{name}", None)
    until(lambda: not BAD.keys() & system.views().keys(), "the odd nodes are forgotten")


def test_bad_objects_are_told_and_trouble_nobody_else(system: System, odd_nodes: list[str]) -> None:
    node = system.fleet.names[3]
    size = len(system.pool(node))
    system.use_more(node, 1)
    until(lambda: len(system.pool(node)) == size + 1, "a healthy node is served beside them")

    def told() -> dict[str, dict[str, Any]]:
        answer = system.cli("status", "--json")
        assert answer.returncode == 1, answer.stderr
        return {view["node"]: view for view in json.loads(answer.stdout)["nodes"]}

    def all_told() -> dict[str, dict[str, Any]] | None:
        views = told()
        return views if all(views.get(name, {}).get("reason") == BAD[name][3] for name in odd_nodes) else None

    views = until(all_told, "each bad object has its reason")
    for name, (*_, word) in BAD.items():
        assert word in " ".join(views[name]["explanation"]), name
        assert not views[name].get("ready"), name
    assert system.clean()
