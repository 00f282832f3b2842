"""The whole system over real processes: what a change costs and what rest costs, counted exactly.

Nothing but the tests changes this fleet: no period comes round, no node is deleted, no process ends.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from waiting import until
from whole import System, running

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE_COUNT = 50
READS = {
    "DescribeNetworkInterfaces": 1,
    "DescribeRouteTables": 1,
    "DescribeSecurityGroups": 1,
    "DescribeSubnets": 1,
    "DescribeVpcs": 1,
}
# A message that waits on a busy machine is not sent twice: runs are counted.
PATIENT = {"ENI_TASKS_OVERDUE_SECONDS": "60"}


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running(settings=PATIENT) as system:
        until(system.flower_is_up, "Flower shows a worker per queue")
        system.fleet.add(NODE_COUNT)
        yield system


@pytest.fixture(autouse=True)
def at_rest(system: System) -> None:
    until(system.quiet, "all pools are at size, and no work is left")


def test_fifty_nodes_are_filled(system: System) -> None:
    assert all(len(system.pool(name)) >= 8 for name in system.fleet.names)
    assert system.clean()


def test_what_one_change_costs(system: System) -> None:
    node = system.fleet.names[3]  # an m5.xlarge: there is room on its first interface
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
    """The pass that each period begins, asked for by a person."""
    seen = set(system.tasks())
    system.reset()
    answer = system.cli("resync", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["enqueued"] == "eni.refresh_inventory"
    until(lambda: system.calls().keys() >= READS.keys(), "everything is read")
    until(system.quiet, "the end of the pass")
    until(lambda: set(system.tasks()) - seen, "Flower shows the run")
    assert system.calls() == READS
    assert system.writes() == {"status": 0, "": 0}
    assert set(system.kube.record().counts) <= {"list", "watch"}
    assert {task["name"] for uuid, task in system.tasks().items() if uuid not in seen} == {"eni.refresh_inventory"}
