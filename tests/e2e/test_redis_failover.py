"""A replica is promoted, the old primary becomes its replica, and the name leads to the new one: work goes on there."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import redis
import redis_servers
import unsteady
from unsteady import PROCESSES, WORKERS
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHIN_SECONDS = 15


@pytest.fixture
def replica(system: unsteady.Unsteady) -> Iterator[redis.Redis]:
    """A replica of the system's Redis, in step with it."""
    primary = system.redis.connection_pool.connection_kwargs["port"]
    with (
        redis_servers.running(options=("--replicaof", "127.0.0.1", str(primary))) as url,
        closing(redis.Redis.from_url(url)) as client,
    ):
        until(lambda: client.info("replication")["master_link_status"] == "up", "it has all data")
        yield client


@pytest.fixture
def system() -> Iterator[unsteady.Unsteady]:
    # Reads of EC2 are accepted again when the mutations of before have certainly ended: after this time-out.
    with unsteady.running(ENI_TASKS_EC2_TIMEOUT_SECONDS="1", ENI_TASKS_OVERDUE_SECONDS="2") as system:
        system.fleet.add(6, types=("m5.xlarge",))
        system.comes_to_rest()
        yield system


def test_c09_a_replica_is_promoted_and_all_work_goes_on_there(system: unsteady.Unsteady, replica: redis.Redis) -> None:
    port = replica.connection_pool.connection_kwargs["port"]
    sizes = {name: len(system.pool(name)) for name in system.fleet.names}
    reads = system.calls()["DescribeNetworkInterfaces"]
    replica.replicaof("NO", "ONE")
    system.redis.replicaof("127.0.0.1", port)  # its connections stay open
    switched_at = time.monotonic()
    system.wire.lead_to(port)
    for name in system.fleet.names:
        system.use_more(name, 1)
    until(
        lambda: all(len(system.pool(name)) > size for name, size in sizes.items()),
        "watcher, ec2 and apiserver workers go on",
        seconds=WITHIN_SECONDS,
    )
    until(lambda: system.calls()["DescribeNetworkInterfaces"] > reads, "EC2 is read", seconds=WITHIN_SECONDS)
    print(f"\nall work went on {time.monotonic() - switched_at:.1f} s after the failover")  # noqa: T201
    assert system.sandbox.children.dead() == []
    until(lambda: system.ready(*PROCESSES), "all serve", seconds=WITHIN_SECONDS)
    assert urlsplit(system.wire.url).port != port
    system.services.state.connection.client.connection_pool.disconnect()  # the test's own
    ours = [each["name"] for each in system.redis.client_list() if "eni" in each["name"]]
    assert ours == [], "no process of ours stays at the old primary"
    assert all(system.said(name, "Unrecoverable error") == 0 for name in WORKERS)
    assert system.ec2.violations() == []
