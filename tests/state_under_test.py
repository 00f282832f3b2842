"""The state adapter on a server of the tests, and a way to let time pass without waiting."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from eni_tasks.adapters.state.budgets import RedisBudgets
from eni_tasks.adapters.state.connection import Scripts, connect
from eni_tasks.adapters.state.keys import Keys
from eni_tasks.adapters.state.lookout import RedisLookout
from eni_tasks.adapters.state.meters import RedisMeters
from eni_tasks.adapters.state.runs import RedisRuns
from eni_tasks.adapters.state.store import RedisStore
from eni_tasks.adapters.state.work import RedisWork
from eni_tasks.model.network import InstanceId, Interface, InterfaceId, NodeName, SubnetId, VpcId
from eni_tasks.ports.work import Claim, WorkKind

if TYPE_CHECKING:
    from collections.abc import Mapping

LEASE, OVERDUE, SETTLE = 30, 20, 5
NODE, INSTANCE, SUBNET = NodeName("n"), InstanceId("i-1"), SubnetId("subnet-1")
KIND = WorkKind.MAINTAIN

# Fields that hold a time; everything in a ZSET is scored by one.
TIMES = ("sent", "not_before", "lease", "described_at", "mutated_at", "doubted_at", "at", "halved_at", "throttled_at")
TIMES += ("until", "probe", "began_at", "quiet_until", "promised", "read_at")


class State:
    """Work, budgets and store of a cluster of its own."""

    def __init__(self, url: str, buckets: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.url = url
        self.cluster = uuid.uuid4().hex
        self.client = connect(url, connections=40)
        self.keys = Keys(self.cluster)
        scripts = Scripts(self.client)
        self.work = RedisWork(self.client, scripts, self.keys, lease_seconds=LEASE, overdue_seconds=OVERDUE)
        self.store = RedisStore(self.client, scripts, self.keys, settle_seconds=SETTLE)
        buckets = {"A": (10, 5)} if buckets is None else buckets
        self.runs = RedisRuns(scripts, self.work, self.store)
        self.budgets = RedisBudgets(self.client, scripts, self.keys, buckets)
        self.lookout = RedisLookout(self.client, self.keys, self.store, buckets)
        self.meters = RedisMeters(self.client, self.keys)

    def later(self, seconds: float) -> None:
        """Let time pass: move every time that this cluster keeps into the past by `seconds`."""
        milliseconds = round(seconds * 1000)
        for key in self.client.scan_iter(f"{self.keys.work(KIND, '').split('work:')[0]}*", count=1000):
            match self.client.type(key):
                case b"zset":
                    for member, score in self.client.zrange(key, 0, -1, withscores=True):
                        self.client.zadd(key, {member: score - milliseconds})
                case b"hash":
                    for field, value in zip(TIMES, self.client.hmget(key, TIMES), strict=True):
                        if value is not None:
                            self.client.hset(key, field, int(float(value)) - milliseconds)

    def old_epoch(self) -> None:
        """Redis has held its content for long."""
        self.store.begin_epoch()
        self.later(86_400)

    def claim(self, name: str = NODE, kind: WorkKind = KIND) -> Claim:
        claim = self.work.claim(kind, NodeName(name))
        assert claim is not None
        return claim

    def left_over(self) -> list[str]:
        """Keys of work that is not done."""
        prefix = self.keys.work(KIND, "").split("work:")[0]
        return [
            key.decode()
            for part in ("work", "pending")
            for key in self.client.scan_iter(f"{prefix}{part}:*", count=1000)
        ]


def interface(name: str = "eni-1", *addresses: str) -> Interface:
    return Interface(
        id=InterfaceId(name),
        subnet_id=SUBNET,
        vpc_id=VpcId("vpc-1"),
        primary_address="10.0.0.1",
        addresses=addresses,
    )
