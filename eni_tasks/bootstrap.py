"""Settings → adapters → services: the only place that names concrete classes.

boto3 and the Kubernetes client are imported where they are first needed: each costs a process that has
no use for it a third of a second of CPU at its start, and a fleet of workers starts at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from eni_tasks.adapters.state.budgets import RedisBudgets
from eni_tasks.adapters.state.connection import Scripts, connect
from eni_tasks.adapters.state.keys import Keys
from eni_tasks.adapters.state.lookout import RedisLookout
from eni_tasks.adapters.state.meters import RedisMeters
from eni_tasks.adapters.state.orphans import RedisOrphans
from eni_tasks.adapters.state.repair import RedisRepairs
from eni_tasks.adapters.state.runs import RedisRuns
from eni_tasks.adapters.state.server import RedisServer
from eni_tasks.adapters.state.standing import RedisStandings
from eni_tasks.adapters.state.store import RedisStore
from eni_tasks.adapters.state.work import RedisWork
from eni_tasks.domain.orphans import Rule
from eni_tasks.observability.logs import logger
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.doctor import Workers
from eni_tasks.ports.messages import Messages
from eni_tasks.services.assigning import Assigner
from eni_tasks.services.creating import Creator
from eni_tasks.services.dispatch import Dispatch
from eni_tasks.services.doctor.examination import Doctor
from eni_tasks.services.inspect import Inspect
from eni_tasks.services.intake import Intake
from eni_tasks.services.keeper import Keeper
from eni_tasks.services.maintain import Maintain
from eni_tasks.services.metering import Metering
from eni_tasks.services.mutating import Mutator, busy_seconds
from eni_tasks.services.orphans import Orphans
from eni_tasks.services.overview import Overview
from eni_tasks.services.publish import Publish
from eni_tasks.services.reactions import Reactions
from eni_tasks.services.reading import Reader
from eni_tasks.services.refresh import Refresh
from eni_tasks.services.review import Review
from eni_tasks.services.steering import Steering
from eni_tasks.services.ticking import Ticker
from eni_tasks.services.unlocking import Unlocking
from eni_tasks.settings import Settings

if TYPE_CHECKING:
    from eni_tasks.adapters.ec2.adapter import BotoEc2
    from eni_tasks.adapters.kube.client import KubeClient
    from eni_tasks.adapters.kube.feed import KubeNodeFeed

ORPHANS_PER_PASS = 25  # as Cilium: what a wrong rule could do in one go is bounded
CONNECTIONS = 64  # to Redis, EC2 and the API server each: more than any worker has threads


class Services:
    """The use cases of one process; each is built when it is first asked for.

    A process that only publishes needs no EC2, one that only maintains no way to the API server.

    Args:
        settings: what the operator decided.
        messages: how hints are sent (Celery's business).
    """

    def __init__(self, settings: Settings, messages: Messages) -> None:
        self.settings = settings
        self.stopping = threading.Event()  # set when the process is told to end
        self.policy = settings.policy()
        self.meter = Meter()
        client = connect(settings.redis_url.get_secret_value(), connections=CONNECTIONS)
        scripts, keys = Scripts(client), Keys(settings.cluster)
        self.store = RedisStore(client, scripts, keys, settle_seconds=settings.settle_seconds)
        self.work = RedisWork(
            client,
            scripts,
            keys,
            lease_seconds=settings.lease_seconds,
            overdue_seconds=settings.overdue_seconds,
        )
        self.budgets = RedisBudgets(client, scripts, keys, settings.budgets)
        self.lookout = RedisLookout(client, keys, self.store, settings.budgets)
        self.meters = RedisMeters(client, keys)
        self.repairs = RedisRepairs(client, scripts, keys)
        self.standings = RedisStandings(client, keys)
        self.redis_server = RedisServer(client, keys)
        self.runs = RedisRuns(scripts, self.work, self.store)
        self.orphan_memory = RedisOrphans(client, scripts, keys)
        self.dispatch = Dispatch(self.work, self.runs, messages, self.orphan_memory, self.meter)
        self.keeper = Keeper(self.work, settings.lease_seconds)

    @cached_property
    def ec2(self) -> BotoEc2:
        """EC2; its client is made at the first call, after any fork."""
        from eni_tasks.adapters.ec2.adapter import BotoEc2  # noqa: PLC0415 - see the top
        from eni_tasks.adapters.ec2.client import ClientOptions  # noqa: PLC0415 - see the top

        options = ClientOptions(read_timeout_seconds=self.settings.ec2_timeout_seconds, connections=CONNECTIONS)
        return BotoEc2(options=options, observe=self._observe, warn=_warn)

    @cached_property
    def kube(self) -> KubeClient:
        """The way to the API server.

        Raises:
            InvalidInput: there is no usable configuration.
        """
        from eni_tasks.adapters.kube.client import KubeClient  # noqa: PLC0415 - see the top

        return KubeClient(self.settings.kube_timeout_seconds, CONNECTIONS)

    @cached_property
    def intake(self) -> Intake:
        """Taking in what the watcher sees."""
        return Intake(self.store, self.work, self.dispatch, self.policy, quiet_seconds=self._quiet_seconds)

    @cached_property
    def node_feed(self) -> KubeNodeFeed:
        """What the watcher follows."""
        from eni_tasks.adapters.kube.feed import KubeNodeFeed  # noqa: PLC0415 - see the top

        return KubeNodeFeed(self.kube, self.settings.watch_timeout_seconds)

    @cached_property
    def maintain(self) -> Maintain:
        """Bringing a node's pool to size."""
        mutator = Mutator(self.budgets, self.meter, self.stopping, timeout_seconds=self.settings.ec2_timeout_seconds)
        reactions = Reactions(
            self.store, settle_seconds=self.settings.settle_seconds, busy_seconds=mutator.busy_seconds
        )
        return Maintain(
            self.store,
            self.work,
            self.runs,
            self.dispatch,
            self.keeper,
            Assigner(self.store, self.ec2, mutator, reactions, self.meter),
            Creator(self.store, self.ec2, mutator, reactions, self.meter),
            self.policy,
            self.stopping,
            self.meter,
        )

    @cached_property
    def publish(self) -> Publish:
        """Writing a node's object."""
        from eni_tasks.adapters.kube.nodes import KubeNodes  # noqa: PLC0415 - see the top

        nodes = KubeNodes(self.kube)
        return Publish(self.store, self.work, self.runs, self.dispatch, self.keeper, nodes, self.intake, self.policy)

    @cached_property
    def refresh(self) -> Refresh:
        """Reading facts from EC2."""
        reader = Reader(
            self.store,
            self.ec2,
            instance_tags=self.settings.instance_tags,
            settle_seconds=self.settings.settle_seconds,
        )
        review = Review(self.store, self.dispatch, self.policy)
        return Refresh(
            self.store,
            self.work,
            self.dispatch,
            self.keeper,
            reader,
            review,
            self.budgets,
            self.policy,
            self.settings.settle_seconds,
        )

    @cached_property
    def overview(self) -> Overview:
        """What people look at."""
        return Overview(self.store, Inspect(self.store, self.policy), self.lookout, self.standings, self.repairs)

    @cached_property
    def steering(self) -> Steering:
        """What people do to the running system."""
        return Steering(self.store, self.budgets, self.lookout, self.dispatch)

    @cached_property
    def unlocking(self) -> Unlocking:
        """Taking a node from a stuck worker."""
        call_seconds = busy_seconds(self.settings.ec2_timeout_seconds)
        return Unlocking(self.store, self.work, self.repairs, self.dispatch, call_seconds=call_seconds)

    def metering(self) -> Metering:
        """Bringing what this process counts to the shared sums, while a block runs."""
        return Metering(self.meter, self.meters)

    @cached_property
    def orphans(self) -> Orphans:
        """Deleting interfaces that were left behind."""
        mutator = Mutator(self.budgets, self.meter, self.stopping, timeout_seconds=self.settings.ec2_timeout_seconds)
        rule = Rule(
            cluster=self.settings.cluster,
            grace_seconds=self.settings.orphan_grace_seconds,
            removed_wait_seconds=mutator.busy_seconds,
            most_count=ORPHANS_PER_PASS,
        )
        return Orphans(
            self.store,
            self.orphan_memory,
            self.work,
            self.dispatch,
            self.keeper,
            self.ec2,
            mutator,
            self.meter,
            rule,
        )

    def doctor(self, workers: Workers) -> Doctor:
        """Who finds out what stands in the way.

        Args:
            workers: how our workers are asked (Celery's business).
        """
        from eni_tasks.adapters.ec2.client import ClientOptions  # noqa: PLC0415 - see the top
        from eni_tasks.adapters.ec2.dry_run import Ec2DryRuns  # noqa: PLC0415 - see the top
        from eni_tasks.adapters.kube.access import KubeAccess  # noqa: PLC0415 - see the top

        options = ClientOptions(read_timeout_seconds=self.settings.ec2_timeout_seconds)
        return Doctor(
            self.settings,
            self.store,
            self.lookout,
            self.redis_server,
            lambda: KubeAccess(self.kube),
            Ec2DryRuns(options),
            workers,
        )

    @property
    def _quiet_seconds(self) -> float:
        """For how long a mutation may go on and then not be seen by reads."""
        return busy_seconds(self.settings.ec2_timeout_seconds) + self.settings.settle_seconds

    def ticker(self, on_new_epoch: Callable[[], None]) -> Ticker:
        """What the watcher does once a second.

        Args:
            on_new_epoch: called when Redis turns out to have been emptied.
        """
        return Ticker(
            self.store,
            self.dispatch,
            resync_seconds=self.settings.resync_seconds,
            orphan_seconds=self.settings.orphan_interval_seconds,
            quiet_seconds=self._quiet_seconds,
            stuck_seconds=self.settings.stuck_seconds,
            on_new_epoch=on_new_epoch,
        )

    def _observe(self, action: str, code: str, seconds: float) -> None:
        self.meter.observe("ec2_api_duration_seconds", {"operation": action, "response_code": code}, seconds)
        logger().debug("ec2_called", action=action, code=code, seconds=round(seconds, 4))


def broker_prefix(settings: Settings) -> str:
    """The prefix of Celery's own keys: deployments share a Redis without meeting."""
    return Keys(settings.cluster).broker


def _warn(sentence: str) -> None:
    logger().warning("ec2_item_left_out", reason=sentence)
