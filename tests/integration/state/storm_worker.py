"""A worker process of the storm: takes messages, claims, works a moment, finishes, and may be killed at any point.

Run as a program: URL, cluster, lease and overdue time in seconds. All that it observes goes to Redis.
"""

from __future__ import annotations

import random
import sys
import time

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Finished, WorkKind
from eni_tasks.state.connection import Connection, connect
from eni_tasks.state.keys import Keys
from eni_tasks.state.queue import WorkQueue


def main(url: str, cluster: str, lease_seconds: str, overdue_seconds: str) -> None:
    client = connect(url, connections=2)
    queue = WorkQueue(
        Connection(client, Keys(cluster)), lease_seconds=float(lease_seconds), overdue_seconds=float(overdue_seconds)
    )
    while True:
        message = client.brpop([f"{cluster}:queue"], timeout=1)
        if message is None:
            continue
        name = NodeName(message[1].decode())
        before = _now(client)
        claim = queue.claim(WorkKind.MAINTAIN, name)
        if claim is None:
            continue
        # The world is read after the claim: what the run is good for.
        saw = int(client.hget(f"{cluster}:world", name) or 0)
        client.rpush(f"{cluster}:runs:{name}", f"{claim.fence} claim {before} {saw}")
        client.rpush(f"{cluster}:runs:{name}", f"{claim.fence} begin {_now(client)} {saw}")
        time.sleep(random.uniform(0.001, 0.006))  # noqa: S311 - no secret
        client.rpush(f"{cluster}:runs:{name}", f"{claim.fence} end {_now(client)} {saw}")
        finished = queue.finish(claim)
        if finished is not Finished.STALE:
            client.rpush(f"{cluster}:runs:{name}", f"{claim.fence} finished {_now(client)} {saw}")
        if finished is Finished.SEND:
            client.lpush(f"{cluster}:queue", name)


def _now(client: object) -> int:
    seconds, micros = client.time()  # type: ignore[attr-defined]
    return int(seconds) * 1_000_000 + int(micros)


if __name__ == "__main__":
    main(*sys.argv[1:])
