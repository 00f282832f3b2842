"""More worker processes serve a backlog faster: part of `make bench`.

With 50 ms per EC2 call the work is waiting. Each worker has one thread, so that this machine's cores are not what
is measured. The clock runs from the first to the last call of EC2, since starting processes is not serving.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from meters import check

from eni_tasks.model.work import WorkKind
from eni_tasks.sandbox.running import Sandbox

LATENCY_MS, NODES = "50", 150
DEADLINE_SECONDS = 120.0


def compare(workers: tuple[int, ...] = (1, 4)) -> None:
    """Serve the same backlog with so many ec2 workers, and print how much faster the last were than the first."""
    rates = [serve(count) for count in workers]
    print(
        f"scaling: {NODES} nodes wait for one Assign of {LATENCY_MS} ms each: "
        + ", ".join(f"{rate:.0f}/s with {count} ec2 workers" for count, rate in zip(workers, rates, strict=True))
        + f": {rates[-1] / rates[0]:.1f} times as fast."
    )


def serve(workers: int) -> float:
    """Build a backlog without ec2 workers, start them, and return how many nodes they served a second."""
    system = Sandbox(ec2_arguments=("--latency-ms", LATENCY_MS, "--zones", "3"), with_flower=False, start_system=False)
    with system:
        system.fleet.add(NODES, types=("m5.large",), home="pod_subnets")
        for name in ("watcher", "resync", "apiserver"):
            system.start(name)
        services = system.services()
        until(lambda: services.state.summary.read(()).work[WorkKind.MAINTAIN].pending_count == NODES)
        for number in range(workers):
            arguments = ["worker", "--queue", "ec2", "--threads", "1"]
            system.children.start(f"ec2-{number}", "eni_tasks.cli", arguments, system.environment)
        until(lambda: served(system) >= workers)
        started, before = time.monotonic(), served(system)
        until(lambda: served(system) == NODES)
        rate = (NODES - before) / (time.monotonic() - started)
        check(system)
    return rate


def served(system: Sandbox) -> int:
    """Nodes that have their addresses."""
    return sum(system.ec2.counts().get("AssignPrivateIpAddresses", {}).values())


def until(done: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit("the backlog was not served in time")
        time.sleep(0.02)
