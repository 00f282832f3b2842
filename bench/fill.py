"""`make bench`: fills fleets of several sizes, then changes single nodes of a full fleet.

One EC2 call takes 2 ms, there are no rate limits, and every process runs on this machine, the simulated
APIs included. What counts are ratios and counts; seconds are this machine's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping

from buckets import fill_under_rate_limits
from meters import Reading, check, read, writes
from prefixes import burst
from scaling import compare

from eni_tasks.sandbox.running import Sandbox

CASES: dict[str, tuple[tuple[str, ...], Mapping[str, int], int]] = {
    # name: instance types, watermarks, addresses that a full pool has
    "one Assign": (("m5.large",), {"pre-allocate": 8}, 8),
    "Assign and two interfaces": (("m5.large",), {"min-allocate": 26}, 26),
}
LATENCY_MS = "2"
DEADLINE_SECONDS = 300.0


def main() -> int:
    """Run what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 500, 1000])
    parser.add_argument("--changes", type=int, default=100, help="single changes on the full fleet")
    parser.add_argument("--case", choices=list(CASES), nargs="*", default=list(CASES))
    parser.add_argument("--buckets", action="store_true", help="only a fleet under AWS's rate limits")
    parser.add_argument("--scaling", action="store_true", help="only one worker against four")
    parser.add_argument("--prefixes", action="store_true", help="only a burst of pods with and without prefixes")
    arguments = parser.parse_args()
    parts = ((arguments.buckets, fill_under_rate_limits), (arguments.scaling, compare), (arguments.prefixes, burst))
    if chosen := [part for asked, part in parts if asked]:
        for part in chosen:
            part()
        return 0
    for case in arguments.case:
        for count in arguments.nodes:
            fill(case, count)
    for count in arguments.nodes:
        if arguments.changes:
            single_changes(count, arguments.changes)
    fill_under_rate_limits()
    compare()
    burst()
    return 0


def fill(case: str, count: int) -> None:
    """Fill a fleet whose objects exist before the system starts, and print what it took."""
    types, ipam, full = CASES[case]
    system = Sandbox(ec2_arguments=("--latency-ms", LATENCY_MS, "--zones", "3"), with_flower=False, start_system=False)
    with system:
        system.fleet.add(count, types=types, ipam=ipam, home="pod_subnets")
        system.ec2.reset_calls()
        system.kube.reset_record()
        before = read(system)
        started = time.monotonic()
        system.start_system()
        first = wait_until_full(system, count, full)
        seconds = time.monotonic() - started
        after = read(system)
        check(system)
    since_first = seconds - first + started
    print(
        f"{case}: {count} nodes in {seconds:.1f} s ({count / seconds:.0f}/s), {since_first:.1f} s after the first pool"
    )
    show(before, after, count)


def single_changes(count: int, changes: int) -> None:
    """Change one node after the other on a full fleet, and print how long each pool took to follow."""
    system = Sandbox(ec2_arguments=("--latency-ms", LATENCY_MS, "--zones", "3"), with_flower=False, start_system=False)
    with system:
        system.fleet.add(count, types=("m5.4xlarge",), home="pod_subnets")
        system.start_system()
        wait_until_full(system, count, 8)
        time.sleep(2.0)  # let the last echoes pass, so that single changes are alone
        before = read(system)
        took = [change(system, system.fleet.names[(7 * i) % count], 1 + i // count) for i in range(changes)]
        after = read(system)
        check(system)
    took.sort()
    p99 = took[min(len(took) - 1, int(len(took) * 0.99))]
    print(
        f"single change on {count} nodes: p50 {statistics.median(took) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, "
        f"most {took[-1] * 1000:.0f} ms"
    )
    show(before, after, changes)


def change(system: Sandbox, name: str, used: int) -> float:
    """Let pods use `used` addresses; returns the seconds until the object's pool has as many more."""
    obj = system.fleet.get(name)
    pool = len(obj["spec"]["ipam"]["pool"])
    started = time.monotonic()
    system.fleet.use(obj, used)
    while len(system.fleet.get(name)["spec"]["ipam"]["pool"]) == pool:
        if time.monotonic() - started > DEADLINE_SECONDS:
            raise SystemExit(f"{name}: its pool did not follow")
        time.sleep(0.002)
    return time.monotonic() - started


def wait_until_full(system: Sandbox, count: int, full: int) -> float:
    """Wait until every object's pool has `full` addresses; returns when the first had."""
    first = 0.0
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        # Counting writes is cheap; the fleet itself is listed only when enough have been made.
        wrote = writes(system)
        if wrote and not first:
            first = time.monotonic()
        if wrote >= 2 * count and all(
            len(obj["spec"]["ipam"].get("pool", {})) >= full for obj in system.fleet.objects()
        ):
            return first
        time.sleep(0.1)
    raise SystemExit("the fleet was not filled in time")


def show(before: Reading, after: Reading, count: int) -> None:
    """Print the cost per node (or change)."""
    print(
        f"  per one: {(after.ec2_mutations - before.ec2_mutations) / count:.2f} EC2 mutations, "
        f"{(after.ec2_reads - before.ec2_reads) / count:.3f} EC2 reads, "
        f"{(after.api_writes - before.api_writes) / count:.2f} API writes, "
        f"{(after.redis_commands - before.redis_commands) / count:.0f} Redis commands"
    )
    for name, cpu in after.cpu_seconds.items():
        used = (cpu - before.cpu_seconds.get(name, 0.0)) / count * 1000
        print(f"  {name:>15}: {used:6.2f} ms CPU per one, {after.rss_mib[name]:5.0f} MiB")


if __name__ == "__main__":
    sys.exit(main())
