"""A fleet under AWS's documented rate limits, which EC2 enforces too: `make bench ARGS=--buckets`.

What counts is the ratio of the time taken to the time that the buckets allow, and that EC2 refuses next to
nothing: the buckets are ours to keep. Ten nodes come late, without any address: they overtake.
"""

from __future__ import annotations

import threading
import time

from meters import check

from eni_tasks.model.ec2_actions import AWS_RATE_LIMITS
from eni_tasks.sandbox.running import Sandbox

DEADLINE_SECONDS = 180.0
FULL, LATE_FULL = 18, 8  # addresses of a pool at size
LATE, LATE_SECONDS = 10, 4.0


def fill_under_rate_limits(count: int = 60) -> None:
    """Fill `count` nodes that need two new interfaces each, and ten that come late and need one; print the ratio."""
    system = Sandbox(ec2_arguments=("--latency-ms", "2", "--zones", "3"), aws_rate_limits=True, with_flower=False)
    with system:
        time.sleep(3.0)  # every process is up: what is measured is the buckets
        started = time.monotonic()
        # Pods don't use the first interface, so two new ones hold the 18 addresses.
        routine = {"types": ("m5.large",), "home": "pod_subnets", "first_interface_index": 1}
        system.fleet.add(count, ipam={"min-allocate": FULL}, **routine)
        late = threading.Timer(
            LATE_SECONDS, lambda: system.fleet.add(LATE, ipam={"pre-allocate": LATE_FULL}, **routine)
        )
        late.start()
        all_late, last = wait_until_full(system, count)
        late.join()
        check(system)
        counts = system.ec2.counts()
    size, refill = AWS_RATE_LIMITS["AttachNetworkInterface"]
    allowed = (2 * count + LATE - size) / refill
    refused = sum(n for codes in counts.values() for code, n in codes.items() if code == "RequestLimitExceeded")
    calls = sum(n for codes in counts.values() for n in codes.values())
    print(
        f"AWS's buckets: {count} nodes with two interfaces each and {LATE} late ones with one: "
        f"{last - started:.1f} s; "
        f"the bucket of attaches allows {allowed:.1f} s: {(last - started) / allowed:.2f} times. {refused} of {calls} "
        f"calls refused. The late ones had addresses {all_late - started - LATE_SECONDS:.1f} s after they came."
    )


def wait_until_full(system: Sandbox, count: int) -> tuple[float, float]:
    """Wait until every pool is at size; returns when the late nodes' were, and when all were."""
    all_late, deadline = 0.0, time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        pools = {obj["metadata"]["name"]: len(obj["spec"]["ipam"].get("pool", {})) for obj in system.fleet.objects()}
        late = [pools.pop(name, 0) for name in system.fleet.names[count:]]
        if not all_late and len(late) == LATE and min(late) >= LATE_FULL:
            all_late = time.monotonic()
        if all_late and len(pools) == count and min(pools.values()) >= FULL:
            return all_late, time.monotonic()
        time.sleep(0.1)
    raise SystemExit("the fleet was not filled in time")
