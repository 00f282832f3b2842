"""The composition root: settings, then state and adapters, then services. Only this module names the adapters.

boto3 and the Kubernetes client are imported where they are first needed: each costs a process that does not use
it a third of a second of CPU at its start, and a fleet of workers starts at once.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from eni_tasks.domain.orphans import Rule
from eni_tasks.observability.counters import Counters
from eni_tasks.observability.logs import logger
from eni_tasks.ports.doctor import Workers
from eni_tasks.ports.messages import Messages
from eni_tasks.services.admin import Admin
from eni_tasks.services.collect_orphans import OrphanCollector
from eni_tasks.services.doctor.examination import Doctor
from eni_tasks.services.flush_counters import CounterFlusher
from eni_tasks.services.ingest import Ingest
from eni_tasks.services.maintain import Maintain
from eni_tasks.services.mutate import Mutator, busy_seconds
from eni_tasks.services.pending_pods import PendingPods
from eni_tasks.services.publish import Publish
from eni_tasks.services.read_limits import ReadLimits
from eni_tasks.services.refresh import Refresh
from eni_tasks.services.release import LastLook
from eni_tasks.services.status import Status
from eni_tasks.services.tell import Teller
from eni_tasks.services.tick import Ticker
from eni_tasks.services.work import Work
from eni_tasks.settings import Settings
from eni_tasks.state import State
from eni_tasks.state.connection import connect
from eni_tasks.state.keys import Keys

if TYPE_CHECKING:
    from eni_tasks.adapters.ec2.adapter import BotoEc2
    from eni_tasks.adapters.kube.client import KubeClient
    from eni_tasks.adapters.kube.feed import KubeNodeFeed, KubePodFeed
    from eni_tasks.adapters.kube.nodes import KubeNodes

ORPHANS_PER_PASS = 25  # as Cilium: this bounds what a wrong rule could do in one pass
CONNECTIONS = 64  # to Redis, EC2 and the API server each: more than any worker has threads


class Services:
    """The services of one process; each is built when it is first asked for.

    A process that only publishes needs no EC2; one that only maintains needs the API server only for releases.

    Args:
        settings: what the operator decided.
        messages: how messages are sent (Celery's business).
        interactive: a person or a monitor waits for each answer of Redis; see `connect`.
    """

    def __init__(self, settings: Settings, messages: Messages, *, interactive: bool = False) -> None:
        self.settings = settings
        self.stopping = threading.Event()  # set when the process is asked to end
        self.policy = settings.policy()
        self.counters = Counters()
        self.state = State(
            connect(settings.redis_url.get_secret_value(), connections=CONNECTIONS, interactive=interactive),
            settings.cluster,
            settle_seconds=settings.settle_seconds,
            lease_seconds=settings.lease_seconds,
            overdue_seconds=settings.overdue_seconds,
            buckets=settings.rate_limits,
        )
        self.work = Work(self.state, messages, self.counters)

    # -- adapters --------------------------------------------------------------------------------
    @cached_property
    def ec2(self) -> BotoEc2:
        """EC2; its client is made at the first call, after any fork."""
        from eni_tasks.adapters.ec2.adapter import BotoEc2  # noqa: PLC0415 - see the top
        from eni_tasks.adapters.ec2.client import ClientOptions  # noqa: PLC0415 - see the top

        options = ClientOptions(read_timeout_seconds=self.settings.ec2_timeout_seconds, connections=CONNECTIONS)
        limits = ReadLimits(self.state.limiter, self.counters)
        return BotoEc2(options=options, observe=self._observe, warn=self._item_left_out, read_limits=limits)

    @cached_property
    def kube(self) -> KubeClient:
        """The way to the API server.

        Raises:
            InvalidInput: there is no usable configuration.
        """
        from eni_tasks.adapters.kube.client import KubeClient  # noqa: PLC0415 - see the top

        return KubeClient(self.settings.kube_timeout_seconds, CONNECTIONS)

    @cached_property
    def nodes(self) -> KubeNodes:
        """CiliumNodes, one by one."""
        from eni_tasks.adapters.kube.nodes import KubeNodes  # noqa: PLC0415 - see the top

        return KubeNodes(self.kube)

    @cached_property
    def node_feed(self) -> KubeNodeFeed:
        """What the watcher follows."""
        from eni_tasks.adapters.kube.feed import KubeNodeFeed  # noqa: PLC0415 - see the top

        return KubeNodeFeed(self.kube, self.settings.watch_timeout_seconds)

    @cached_property
    def pod_feed(self) -> KubePodFeed:
        """The pods that wait, for the watcher."""
        from eni_tasks.adapters.kube.feed import KubePodFeed  # noqa: PLC0415 - see the top

        return KubePodFeed(self.kube, self.settings.watch_timeout_seconds)

    # -- the watcher -----------------------------------------------------------------------------
    @cached_property
    def ingest(self) -> Ingest:
        """Takes in what the watcher sees."""
        return Ingest(self.state, self.work, self.policy, quiet_seconds=self._quiet_seconds)

    @cached_property
    def pending_pods(self) -> PendingPods:
        """Counts the pods that wait."""
        return PendingPods(self.state)

    def ticker(self, on_new_generation: Callable[[], None]) -> Ticker:
        """What the watcher does once a second.

        Args:
            on_new_generation: called when Redis turns out to have lost its data.
        """
        return Ticker(
            self.state,
            self.work,
            self.settings,
            quiet_seconds=self._quiet_seconds,
            on_new_generation=on_new_generation,
        )

    # -- the workers -----------------------------------------------------------------------------
    @cached_property
    def mutator(self) -> Mutator:
        """Makes mutations of EC2."""
        return Mutator(
            self.state,
            self.ec2,
            self.counters,
            self.stopping,
            timeout_seconds=self.settings.ec2_timeout_seconds,
            settle_seconds=self.settings.settle_seconds,
        )

    @cached_property
    def maintain(self) -> Maintain:
        """Brings a node's pool to size."""
        return Maintain(self.work, self.mutator, self.policy, self._last_look)

    @cached_property
    def orphans(self) -> OrphanCollector:
        """Deletes interfaces that were left behind."""
        rule = Rule(
            cluster=self.settings.cluster,
            grace_seconds=self.settings.orphan_grace_seconds,
            removed_wait_seconds=self.mutator.busy_seconds,
            most_count=ORPHANS_PER_PASS,
        )
        return OrphanCollector(self.work, self.mutator, rule)

    @cached_property
    def publish(self) -> Publish:
        """Writes a node's object."""
        return Publish(self.state, self.work, self.nodes, self.ingest, self.policy, self._teller())

    def _teller(self) -> Teller | None:
        wanted = self.settings.kube_events
        if wanted == "off":
            return None
        from eni_tasks.adapters.kube.events import KubeEvents  # noqa: PLC0415 - see the top

        instance = self.settings.pod_name or socket.gethostname()
        return Teller(KubeEvents(self.kube, instance, on_nodes=wanted == "nodes"), self.counters)

    @cached_property
    def refresh(self) -> Refresh:
        """Reads facts from EC2."""
        return Refresh(
            self.state,
            self.work,
            self.ec2,
            self.policy,
            instance_tags=self.settings.instance_tags,
            settle_seconds=self.settings.settle_seconds,
        )

    # -- people and monitoring -------------------------------------------------------------------
    @cached_property
    def status(self) -> Status:
        """What people look at."""
        return Status(self.state, self.policy)

    @cached_property
    def admin(self) -> Admin:
        """What people do to the running system."""
        return Admin(self.state, self.work, call_seconds=busy_seconds(self.settings.ec2_timeout_seconds))

    def counter_flusher(self) -> CounterFlusher:
        """Adds what this process counts to the shared sums, while a block runs."""
        return CounterFlusher(self.counters, self.state.counters)

    def doctor(self, workers: Workers) -> Doctor:
        """Finds what stands in the way.

        Args:
            workers: how the workers are asked (Celery's business).
        """
        from eni_tasks.adapters.ec2.client import ClientOptions  # noqa: PLC0415 - see the top
        from eni_tasks.adapters.ec2.dry_run import Ec2DryRuns  # noqa: PLC0415 - see the top
        from eni_tasks.adapters.kube.access import KubeAccess  # noqa: PLC0415 - see the top

        options = ClientOptions(read_timeout_seconds=self.settings.ec2_timeout_seconds)
        return Doctor(self.settings, self.state, lambda: KubeAccess(self.kube), Ec2DryRuns(options), workers)

    def _last_look(self) -> LastLook:
        from eni_tasks.adapters.kube.node_use import KubeNodeUses  # noqa: PLC0415 - see the top

        return LastLook(self.nodes, KubeNodeUses(self.kube), self.settings.release_delay_seconds)

    @property
    def _quiet_seconds(self) -> float:
        """For how long a mutation may run and then not be seen by reads."""
        return busy_seconds(self.settings.ec2_timeout_seconds) + self.settings.settle_seconds

    def _observe(self, action: str, code: str, seconds: float) -> None:
        self.counters.observe("ec2_api_duration_seconds", {"operation": action, "response_code": code}, seconds)
        logger().debug("ec2_called", action=action, code=code, seconds=round(seconds, 4))

    def _item_left_out(self, sentence: str) -> None:
        self.counters.count("ec2_items_left_out_total")
        logger().warning("ec2_item_left_out", reason=sentence)


def broker_prefix(settings: Settings) -> str:
    """The prefix of Celery's own keys, so that several deployments can share a Redis."""
    return Keys(settings.cluster).broker
