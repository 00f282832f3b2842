"""What people and monitoring do with a running system: commands, tasks by hand, bad objects, the exporter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import processes_under_test
import pytest
import urllib3
from chart import objects, one
from prometheus_client.parser import text_string_to_metric_families
from waiting import until
from whole import System, running

from eni_tasks.sandbox.running import CLUSTER
from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = 4
NODE = "node-0000"
ROOMY = "node-0003"  # an m5.xlarge: there is room on its first interface


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    # What is in excess is asked for at once: no test waits for a delay.
    with running(settings={"ENI_TASKS_RELEASE_EXCESS": "true", "ENI_TASKS_RELEASE_DELAY_SECONDS": "0"}) as system:
        until(system.flower_is_up, "Flower shows a worker per queue")
        system.fleet.add(NODES)
        yield system


@pytest.fixture(autouse=True)
def at_rest(system: System) -> None:
    until(system.quiet, "all pools are at size, and no work is left")


def others_are_served(system: System) -> None:
    """Let a node lack an address, and get it."""
    size = len(system.pool(ROOMY))
    system.use_more(ROOMY, 1)
    until(lambda: len(system.pool(ROOMY)) == size + 1, "a healthy node is served")


def test_what_is_in_excess_is_given_back_when_the_agent_agrees(system: System) -> None:
    used, size = len(system.fleet.agent(system.fleet.get(ROOMY)).used), len(system.pool(ROOMY))
    system.use_more(ROOMY, 3)
    until(lambda: len(system.pool(ROOMY)) == size + 3, "the pool has grown")
    until(system.quiet, "nothing is left to do")
    system.reset()
    system.fleet.use(system.fleet.get(ROOMY), used)

    def given_back() -> bool:
        obj = system.fleet.get(ROOMY)
        system.fleet.report(obj)
        return len(system.pool(ROOMY)) == size and not obj["status"]["ipam"].get("release-ips")

    until(given_back, "the pool is as it was, and the agent has deleted its entries")
    assert system.calls() == {"UnassignPrivateIpAddresses": 1}
    assert system.clean()


# -- commands --------------------------------------------------------------------------------------
def test_status_tells_how_the_fleet_stands(system: System) -> None:
    answer = system.cli("status", "--json")
    assert answer.returncode == 0, answer.stderr
    fleet = json.loads(answer.stdout)
    assert {node["node"] for node in fleet["nodes"]} == set(system.fleet.names)
    assert fleet["ready_count"] == fleet["total_count"]
    one = system.cli("status", NODE)
    assert one.returncode == 0
    assert "nothing is needed" in one.stdout


def test_a_plan_is_told_and_not_done(system: System) -> None:
    answer = system.cli("plan", NODE, "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["reason"] == "at-size"


@pytest.mark.parametrize("command", ["maintain", "publish"])
def test_a_person_can_enqueue_a_run(system: System, command: str) -> None:
    answer = system.cli(command, NODE, "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert (report["node"], report["kind"], report["sent"]) == (NODE, command, 1)


def test_wrong_use_is_told(system: System) -> None:
    answer = system.cli("status", "nobody")
    assert answer.returncode == 1
    assert "no CiliumNode of that name is known" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize(
    ("denied", "code"), [([], 0), (["CreateNetworkInterface"], 1)], ids=["well", "a right is missing"]
)
def test_helm_test_runs_the_doctor(system: System, denied: list[str], code: int) -> None:
    """The command of the chart's pod, with its variables where they say nothing about where things are."""
    found = objects({"settings": {"cluster": CLUSTER}})
    (pod,) = [
        manifest for manifest in found if manifest["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
    ]
    (container,) = pod["spec"]["containers"]
    settings = one(found, "ConfigMap", "settings")["data"]
    assert container["envFrom"] == [{"configMapRef": {"name": "eni-tasks-settings"}}]
    program = str(Path(sys.executable).parent / container["command"][0])
    system.ec2.set_knobs(denied_actions=denied)
    answer = subprocess.run(
        [program, *container["command"][1:], *container["args"]],
        env={**settings, **system.sandbox.environment, "ENI_TASKS_POD_NAME": pod["metadata"]["name"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    system.ec2.set_knobs(denied_actions=[])
    assert answer.returncode == code, answer.stdout + answer.stderr
    assert pod["spec"]["restartPolicy"] == "Never"
    assert all(action in answer.stdout for action in denied)


def test_the_doctor_finds_nothing_wrong(system: System) -> None:
    answer = system.cli("doctor", "--json")
    assert answer.returncode == 0, answer.stdout
    findings = json.loads(answer.stdout)["findings"]
    assert {finding["verdict"] for finding in findings} <= {"ok", "unknown"}
    assert {finding["what"] for finding in findings} >= {*QUEUES, "ticks", "reachable", "ec2:AssignPrivateIpAddresses"}


# -- tasks by hand ---------------------------------------------------------------------------------
def by_flower(system: System, task: str, **arguments: Any) -> str:
    """Start a task through Flower's API; returns its id."""
    url = f"{system.sandbox.flower_url}/api/task/async-apply/{task}"
    answer = urllib3.request("POST", url, body=json.dumps(arguments), retries=False, timeout=10)
    assert answer.status == 200, answer.data
    return str(json.loads(answer.data)["task-id"])


def by_celery(system: System, task: str, **arguments: Any) -> str:
    """Start a task with Celery's own command; returns its id."""
    options = [word for name, value in arguments.items() for word in (f"--{name}", json.dumps(value))]
    sent = system.celery("call", task, *options)
    assert sent.returncode == 0, sent.stderr
    return sent.stdout.split()[-1]


@pytest.mark.parametrize(
    ("task", "args", "report"),
    [
        ("eni.maintain_node", [NODE], "'reason': 'at-size'"),
        ("eni.maintain_node", ["nobody"], "no CiliumNode of that name is known"),
        ("eni.publish_node", [NODE], "'node': 'node-0000'"),
        ("eni.refresh_inventory", [], f"'instances': {NODES}"),
        ("eni.refresh_instances", [], "'instances':"),
        ("eni.resync_node", [NODE], "'believed': True"),
        ("eni.unlock_node", [NODE], "No worker holds node-0000"),
        ("eni.collect_orphans", [True], "'would_delete': []"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("eni.") else "",
)
def test_a_report_is_the_result(system: System, task: str, args: list[str], report: str) -> None:
    shown = system.outcome(by_flower(system, task, args=args))
    assert shown["state"] == "SUCCESS", shown
    assert report in shown["result"]


def test_a_pause_and_its_end(system: System) -> None:
    paused = system.outcome(by_flower(system, "eni.pause", args=["Ada", "a look"]))
    assert "paused by Ada: a look" in paused["result"]
    resumed = system.outcome(by_flower(system, "eni.resume"))
    assert "The pause by Ada (a look) is over" in resumed["result"]


def test_the_same_with_celery_and_named_arguments(system: System) -> None:
    shown = system.outcome(by_celery(system, "eni.resync_node", kwargs={"node": NODE}))
    assert "1 interface with 8 secondary addresses" in shown["result"]


WRONG = [
    ("eni.maintain_node", {"args": []}, "missing a required argument: 'node' (its arguments: node)"),
    ("eni.maintain_node", {"kwargs": {"nod": "x"}}, "missing a required argument: 'node'"),
    ("eni.maintain_node", {"args": ["x y"]}, "'x y' is not the name of a node"),
    ("eni.maintain_node", {"args": [{"node": 1}]}, "is not the name of a node"),
    ("eni.publish_node", {"args": ["x y"]}, "'x y' is not the name of a node"),
    ("eni.unlock_node", {"args": [7]}, "7 is not the name of a node"),
    ("eni.pause", {"args": ["Ada"]}, "missing a required argument: 'why' (its arguments: who, why)"),
    ("eni.pause", {"args": ["Ada", ""]}, "why is empty"),
    ("eni.pause", {"args": ["Ada", "x", "y"]}, "too many positional arguments (its arguments: who, why)"),
    ("eni.collect_orphans", {"args": ["yes"]}, "dry_run='yes' is neither true nor false"),
    ("eni.resume", {"args": ["x"]}, "too many positional arguments (its arguments: none)"),
    ("eni.resync_node", {"args": ["nobody"]}, "node nobody: no CiliumNode of that name is known"),
]


def test_wrong_arguments_are_refused_by_name_and_do_nothing(system: System) -> None:
    system.reset()
    started = [(by_flower(system, task, **arguments), words) for task, arguments, words in WRONG]
    for uuid, words in started:
        shown = system.outcome(uuid)
        assert shown["state"] == "FAILURE", shown
        assert words in shown["exception"]
    assert system.services.state.limiter.paused() is None
    assert not any("Traceback" in (system.sandbox.folder / f"{queue}.log").read_text() for queue in QUEUES)
    others_are_served(system)


# -- bad objects -----------------------------------------------------------------------------------
HEAD = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode"}
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
    healthy = system.fleet.get(NODE)["spec"]
    place = {key: healthy["eni"][key] for key in ("instance-type", "vpc-id", "availability-zone", "node-subnet-id")}
    for name, (spec, eni, ipam, _, _) in BAD.items():
        instance = system.ec2.launch_instance("m5.large", healthy["eni"]["node-subnet-id"])
        given = {"instance-id": instance.id, "eni": place | eni, "ipam": ipam} | spec
        system.fleet._call("POST", "", {**HEAD, "metadata": {"name": name}, "spec": given})
    yield list(BAD)
    for name in BAD:
        system.fleet._call("DELETE", f"/{name}", None)
    until(lambda: not BAD.keys() & system.views().keys(), "the odd nodes are forgotten")


def test_bad_objects_are_told_and_trouble_no_other_node(system: System, odd_nodes: list[str]) -> None:
    others_are_served(system)

    def explained() -> dict[str, dict[str, Any]] | None:
        answer = system.cli("status", "--json")
        assert answer.returncode == 1, answer.stderr
        views = {view["node"]: view for view in json.loads(answer.stdout)["nodes"]}
        return views if all(views.get(name, {}).get("reason") == BAD[name][3] for name in odd_nodes) else None

    views = until(explained, "each bad object has its reason")
    for name, (*_, word) in BAD.items():
        assert word in " ".join(views[name]["explanation"]), name
        assert not views[name].get("ready"), name
    assert system.clean()


# -- Prometheus ------------------------------------------------------------------------------------
def scraped(http: urllib3.PoolManager, url: str) -> dict[str, float]:
    """The samples without the bounds of histograms, named as Prometheus writes them, without the prefix."""
    found = {}
    for family in text_string_to_metric_families(http.request("GET", f"{url}/metrics").data.decode()):
        for sample in family.samples:
            labels = ",".join(sorted(value for name, value in sample.labels.items() if name not in {"le", "cluster"}))
            found[f"{sample.name.removeprefix('eni_tasks_')}{{{labels}}}"] = sample.value
    return found


def test_what_workers_do_arrives_at_prometheus(system: System, tmp_path: Path) -> None:
    environment = {**system.sandbox.environment, "ENI_TASKS_LOG_FORMAT": "json", "ENI_TASKS_PAGE_PORT": "0"}
    ours = {name: value for name, value in environment.items() if name.startswith("ENI_TASKS_")}
    log = tmp_path / "exporter.log"
    others_are_served(system)
    until(system.quiet, "no work is left")
    assigns = system.effects_since_start()["AssignPrivateIpAddresses"]
    with (
        processes_under_test.running(log, "workers.exporter", "--port", "0", **ours) as exporter,
        urllib3.PoolManager(timeout=10.0) as http,
    ):
        line = json.loads(exporter.until(lambda: exporter.said.partition("\n")[0], "it says where it listens"))
        url = f"http://127.0.0.1:{line['port']}"
        least = {
            "nodes_ready{}": NODES,
            "state_up{}": 1,
            # Each of these is counted by another process, and each brings its counts when it is due.
            "task_run_seconds_count{eni.maintain_node,ok}": NODES,
            "task_wait_seconds_count{eni.publish_node}": NODES,
            "ec2_api_duration_seconds_count{AssignPrivateIpAddresses,OK}": assigns,
            "enqueued_total{maintain,sent}": NODES,
            "ipam_resync_total{}": 1,
        }

        def late() -> dict[str, float]:
            now = scraped(http, url)
            return {name: now.get(name, 0) for name, value in least.items() if now.get(name, 0) < value}

        try:
            exporter.until(lambda: not late(), "the workers' counts")
        except AssertionError as error:
            error.add_note(f"too low: {late()}, wanted are {least}")
            raise
        assert scraped(http, url)["ec2_api_duration_seconds_count{AssignPrivateIpAddresses,OK}"] == assigns
        assert exporter.end() == 0
    assert "Traceback" not in exporter.said
