"""A burst of pods on each of a few nodes, with and without prefix delegation: `make bench ARGS=--prefixes`.

What counts are the calls of EC2. Pods that wait are known from the watch on pods, so a node asks for all it needs at
once; its agent (of Cilium 1.19) reports in steps, as addresses come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from meters import check, read

from eni_tasks.sandbox.running import Sandbox

Body = dict[str, Any]

NODES, PODS, TYPE = 10, 100, "m5.4xlarge"
MOST_CALLS_PER_INTERFACE = 2
DEADLINE_SECONDS = 120.0
PODS_KNOWN_SECONDS = 3.0  # for the watcher to count the pods that wait


def burst() -> None:
    """Let the same burst come to nodes without and with prefixes, and print what it cost."""
    for prefixes in (False, True):
        settings = {"ENI_TASKS_PREFIX_DELEGATION": str(prefixes).lower()}
        with Sandbox(with_flower=False, settings=settings) as system:
            measure(system, prefixes=prefixes)


def measure(system: Sandbox, *, prefixes: bool) -> None:
    """Measure one burst; ends with an error if prefixes cost more calls than promised."""
    system.fleet.add(NODES, types=(TYPE,), home="pod_subnets")
    until(system, lambda obj: len(pool(obj)) >= (16 if prefixes else 8))
    for name in system.fleet.names:
        system.kube.set_pods(name, [], waiting=PODS)
    time.sleep(PODS_KNOWN_SECONDS)
    before, interfaces_before = read(system), filled(system)
    started = time.monotonic()
    until(system, lambda obj: served(system, obj))
    seconds, after = time.monotonic() - started, read(system)
    until(system, lambda obj: len(pool(obj)) >= PODS + 8)
    check(system)
    calls = (after.ec2_mutations - before.ec2_mutations) / NODES
    interfaces = filled(system) / NODES
    print(
        f"{PODS} pods on each of {NODES} {TYPE}, {'/28 prefixes' if prefixes else 'single addresses'}: {calls:.1f} EC2 "
        f"mutations per node, {calls / PODS:.3f} per pod; {interfaces:.1f} interfaces filled per node, "
        f"{interfaces_before / NODES:.1f} before; {(after.api_writes - before.api_writes) / NODES:.1f} API writes per "
        f"node; {seconds:.1f} s"
    )
    if prefixes and calls > MOST_CALLS_PER_INTERFACE * interfaces:
        raise SystemExit(f"more than {MOST_CALLS_PER_INTERFACE} EC2 mutations per interface")


def served(system: Sandbox, obj: Body) -> bool:
    """Let pods take what the pool has; whether all of the node's pods have an address."""
    count = min(PODS, len(pool(obj)))
    system.fleet.use(obj, count)
    return count == PODS


def pool(obj: Body) -> Body:
    """The pool that an object shows."""
    entries: Body = obj["spec"]["ipam"].get("pool", {})
    return entries


def filled(system: Sandbox) -> int:
    """Interfaces that hold addresses for pods, over all nodes."""
    return sum(len({entry["resource"] for entry in pool(obj).values()}) for obj in system.fleet.objects())


def until(system: Sandbox, done: Callable[[Body], bool]) -> None:
    """Wait until something is so of every node's object."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not all([done(obj) for obj in system.fleet.objects()]):  # noqa: C419 - each is asked every time
        if time.monotonic() > deadline:
            raise SystemExit("the pods were not served in time")
        time.sleep(0.1)
