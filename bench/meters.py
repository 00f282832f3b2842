"""What a run cost: CPU and memory of each process, calls, writes, Redis commands."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import redis

from eni_tasks.sandbox.running import Sandbox

TICKS = os.sysconf("SC_CLK_TCK")
MUTATIONS = ("Create", "Attach", "Modify", "Assign", "Detach", "Delete")


@dataclass
class Reading:
    """Counters at one moment."""

    cpu_seconds: dict[str, float] = field(default_factory=dict)
    rss_mib: dict[str, float] = field(default_factory=dict)
    ec2_mutations: int = 0
    ec2_reads: int = 0
    api_writes: int = 0
    redis_commands: int = 0


def read(system: Sandbox) -> Reading:
    """Read all counters of a running sandbox."""
    reading = Reading()
    for name, child in system.children.running.items():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        reading.cpu_seconds[name] = (int(fields[11]) + int(fields[12])) / TICKS
        reading.rss_mib[name] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    for action, codes in system.ec2.counts().items():
        if action.startswith(MUTATIONS):
            reading.ec2_mutations += sum(codes.values())
        else:
            reading.ec2_reads += sum(codes.values())
    reading.api_writes = writes(system)
    client = redis.Redis.from_url(system.environment["ENI_TASKS_REDIS_URL"])
    reading.redis_commands = int(client.info("stats")["total_commands_processed"])
    client.close()
    return reading


def writes(system: Sandbox) -> int:
    """Patches that the system sent to the API server."""
    counts = system.kube.record().counts
    return sum(count for verb, count in counts.items() if verb.startswith("patch"))


def check(system: Sandbox) -> None:
    """End with an error if the oracle has seen anything that must not be."""
    if wrong := system.ec2.violations():
        raise SystemExit("\n".join(wrong))
