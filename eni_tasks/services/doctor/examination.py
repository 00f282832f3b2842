"""The whole examination, area by area; what can't be reached stops only what depends on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from eni_tasks.errors import StateUnavailable
from eni_tasks.ports.doctor import ClusterRights, Ec2Rights, Sample, Workers
from eni_tasks.services.doctor.cluster_checks import examine_cluster
from eni_tasks.services.doctor.ec2_checks import examine_ec2, sample_of
from eni_tasks.services.doctor.findings import Area, Finding
from eni_tasks.services.doctor.redis_checks import examine_journals, examine_redis
from eni_tasks.services.doctor.running_checks import (
    examine_clocks,
    examine_instances,
    examine_nodes,
    examine_switches,
    examine_watcher,
    examine_workers,
)
from eni_tasks.settings import Settings
from eni_tasks.state import State
from eni_tasks.state.server import ServerDescription


class Doctor:
    """Examines all parts.

    Args:
        settings: where the parts are.
        state: the shared state.
        cluster: makes the way to the API server.
        ec2: answers which EC2 actions are permitted.
        workers: for which workers answer.
    """

    def __init__(
        self,
        settings: Settings,
        state: State,
        cluster: Callable[[], ClusterRights],
        ec2: Ec2Rights,
        workers: Workers,
    ) -> None:
        self._settings = settings
        self._state = state
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
        found, server = examine_redis(self._state.server, self._settings.redis_url.get_secret_value())
        yield "Redis", found
        yield "the API server", []
        settings = self._settings
        found, cluster_now = examine_cluster(
            self._cluster,
            surge=settings.surge,
            release=settings.release_excess,
            kube_events=settings.kube_events != "off",
        )
        yield "the API server", found
        yield "AWS", []
        yield "AWS", examine_ec2(self._ec2, self._sample() if server else Sample(), self._settings)
        if server is not None:
            yield "workers", []
            yield "workers", self._running(server, queues)
            yield "clocks", examine_clocks(server.now, asked_at, cluster_now)

    def _sample(self) -> Sample:
        try:
            return sample_of(self._state, self._settings.policy())
        except StateUnavailable:
            return Sample()

    def _running(self, server: ServerDescription, queues: Sequence[str]) -> list[Finding]:
        try:
            summary = self._state.summary.read(queues)
            contested = self._state.nodes.contested()
        except StateUnavailable as error:
            area = Area("queues")
            area.trouble("work", str(error), "See the findings about Redis.")
            return area.findings
        found = examine_workers(self._workers, queues, summary)
        found += examine_watcher(summary, server, self._settings.resync_seconds)
        found += examine_switches(summary) + examine_instances(contested) + examine_journals(self._state.nodes)
        by_instance_tags = bool(self._settings.instance_tags)
        try:
            return found + examine_nodes(self._state, summary.inventory_at, by_instance_tags=by_instance_tags)
        except StateUnavailable as error:
            area = Area("instances")
            area.unknown("known to EC2", str(error), "See the findings about Redis.")
            return found + area.findings
