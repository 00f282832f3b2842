"""`State`: the parts of the shared state on one connection."""

from __future__ import annotations

from collections.abc import Mapping

import redis

from eni_tasks.state.connection import Connection
from eni_tasks.state.coordination import Coordination
from eni_tasks.state.counters import SharedCounters
from eni_tasks.state.events import Events
from eni_tasks.state.facts import FactsCache
from eni_tasks.state.keys import Keys
from eni_tasks.state.limiter import Limiter
from eni_tasks.state.network import NetworkCache
from eni_tasks.state.nodes import Nodes
from eni_tasks.state.orphans import OrphanHistory
from eni_tasks.state.queue import WorkQueue
from eni_tasks.state.reads import ReadRequests
from eni_tasks.state.runs import Runs
from eni_tasks.state.server import RedisServer
from eni_tasks.state.summary import Summary


class State:
    """Everything that one cluster keeps in Redis.

    Args:
        client: from `connection.connect`; nothing is sent before the first call.
        cluster: the cluster's name.
        settle_seconds: EC2's reads may lag this long behind its answers to mutations.
        lease_seconds: how long a claim lives without renewal.
        overdue_seconds: a message that no worker has taken by then is sent again.
        buckets: per EC2 action the bucket's size and its refill per second.
    """

    def __init__(  # noqa: PLR0913 - the settings that concern the state
        self,
        client: redis.Redis,
        cluster: str,
        *,
        settle_seconds: float,
        lease_seconds: float,
        overdue_seconds: float,
        buckets: Mapping[str, tuple[float, float]],
    ) -> None:
        self.connection = connection = Connection(client, Keys(cluster))
        self.queue = WorkQueue(connection, lease_seconds=lease_seconds, overdue_seconds=overdue_seconds)
        self.network = NetworkCache(connection, settle_seconds=settle_seconds)
        self.nodes = Nodes(connection, self.network)
        self.facts = FactsCache(connection, settle_seconds=settle_seconds)
        self.reads = ReadRequests(connection)
        self.runs = Runs(connection, self.queue, self.nodes)
        self.limiter = Limiter(connection, buckets)
        self.orphans = OrphanHistory(connection)
        self.events = Events(connection)
        self.counters = SharedCounters(connection)
        self.coordination = Coordination(connection)
        self.summary = Summary(connection, self.network, buckets, overdue_seconds=overdue_seconds)
        self.server = RedisServer(connection)

    def now(self) -> float:
        """Redis' time in seconds.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        return self.connection.now_ms() / 1000
