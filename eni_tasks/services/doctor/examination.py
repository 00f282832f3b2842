"""The whole examination, area by area; what can't be reached stops only what depends on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from eni_tasks.errors import StateUnavailable
from eni_tasks.ports.doctor import ClusterRights, Ec2Rights, RedisServer, Sample, ServerLook, Workers
from eni_tasks.ports.lookout import Lookout
from eni_tasks.ports.state import Store
from eni_tasks.services.doctor.cluster_checks import examine_cluster
from eni_tasks.services.doctor.ec2_checks import examine_ec2, sample_of
from eni_tasks.services.doctor.findings import Area, Finding
from eni_tasks.services.doctor.redis_checks import examine_redis
from eni_tasks.services.doctor.running_checks import (
    examine_clocks,
    examine_switches,
    examine_watcher,
    examine_workers,
)
from eni_tasks.settings import Settings


class Doctor:
    """Asks everybody."""

    def __init__(  # noqa: PLR0913 - everybody who is asked
        self,
        settings: Settings,
        store: Store,
        lookout: Lookout,
        server: RedisServer,
        cluster: Callable[[], ClusterRights],
        ec2: Ec2Rights,
        workers: Workers,
    ) -> None:
        self._settings = settings
        self._store = store
        self._lookout = lookout
        self._server = server
        self._cluster = cluster
        self._ec2 = ec2
        self._workers = workers

    def examine(self, queues: Sequence[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Look at one area after the other.

        Args:
            queues: the Celery queues that must be served.

        Yields:
            An area's name before it is looked at, with nothing, and then with its findings.
        """
        yield "Redis", []
        asked_at = time.time()
        found, server = examine_redis(self._server, self._settings.redis_url.get_secret_value())
        yield "Redis", found
        yield "the API server", []
        found, cluster_now = examine_cluster(self._cluster)
        yield "the API server", found
        yield "AWS", []
        tags = bool(self._settings.instance_tags)
        yield "AWS", examine_ec2(self._ec2, self._sample(), by_instance_tags=tags)
        if server is not None:
            yield "workers", []
            yield "workers", self._running(server, queues)
            yield "clocks", examine_clocks(server.now, asked_at, cluster_now)

    def _sample(self) -> Sample:
        try:
            return sample_of(self._store, self._settings.policy())
        except StateUnavailable:
            return Sample()

    def _running(self, server: ServerLook, queues: Sequence[str]) -> list[Finding]:
        try:
            look = self._lookout.look(queues)
        except StateUnavailable as error:
            area = Area("queues")
            area.trouble("work", str(error), "See the findings about Redis.")
            return area.findings
        found = examine_workers(self._workers, queues, look)
        found += examine_watcher(look, server, self._settings.resync_seconds)
        return found + examine_switches(look)
