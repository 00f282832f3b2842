"""Every Redis key of a deployment: name, type, content, lifetime. No key is named anywhere else.

All keys of a cluster share one hash tag, so that scripts may touch several of them, also on a
server in cluster mode. `v1` is the layout: a change that neighbouring versions could not read gets
another number. Times are Redis' own, in whole milliseconds. A key without a lifetime goes with the
node, the work or the entry that it describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eni_tasks.ports.work import WorkKind


class Keys:
    """The key names of one cluster.

    Args:
        cluster: the cluster's name.
    """

    def __init__(self, cluster: str) -> None:
        prefix = f"{{eni:{cluster}}}:v1:"
        self._prefix = prefix

        # STRING, INT. The last fence. Never below the clock, so that it grows even when Redis was emptied.
        self.fence = f"{prefix}fence"

        # HASH. Node → the trimmed CiliumNode, JSON.
        self.nodes = f"{prefix}nodes"
        # HASH. Node → "<resourceVersion> <uid> <instance id> <instance type>" of that object: scripts need not
        # decode JSON.
        self.versions = f"{prefix}versions"
        # HASH. Node → Memory, JSON.
        self.memory = f"{prefix}memory"
        # HASH. Node → the saga in flight, as the service wrote it.
        self.journal = f"{prefix}journal"
        # ZSET. Node whose instance is to be read → due; while it is being read: end of the reader's lease.
        self.reads = f"{prefix}reads"

        # ZSET. Node that lacks addresses which it could have → since when.
        self.needy = f"{prefix}needy"

        # HASH. json: Infrastructure; described_at: readers fetch the big value only when this has changed.
        self.infrastructure = f"{prefix}infrastructure"
        # HASH. Instance type → Limits, JSON; or "-<until>" for a type that EC2 does not know.
        self.limits = f"{prefix}limits"
        # HASH. Subnet → addresses held against its free count: the sum of its entries.
        self.ledger = f"{prefix}ledger"
        # ZSET. "<subnet>|<id>|<count>" → when the taking has certainly ended. A description of the subnets
        # that began later (plus the settle time) has the addresses in its free counts, and the entry goes.
        self.ledger_entries = f"{prefix}ledger:entries"
        # ZSET. Subnet that said "full" → until.
        self.benched = f"{prefix}benched"

        # ZSET. Interface that passes of the collector have seen unattached, in no journal → since when. Forgotten
        # two hours after the last pass; after that, or when Redis was emptied, the waits begin anew.
        self.orphans = f"{prefix}orphans"
        # ZSET. Instance whose node was removed → when; kept for an hour. Without it what the node left behind
        # only waits longer.
        self.removed = f"{prefix}removed"

        # HASH. pause: Pause, JSON; there while mutations are paused. read_at: when the last
        # good read of everything began. unread: flights that failed since the last good one.
        self.switches = f"{prefix}switches"
        # Prefix of Celery's own keys: deployments share a Redis without meeting.
        self.broker = f"{prefix}broker:"
        # STRING. A random mark; gone when Redis was emptied.
        self.epoch = f"{prefix}epoch"
        # HASH. began_at: when the mark was set; quiet_until: mutations of before may go on until then.
        self.epoch_times = f"{prefix}epoch:times"
        # HASH. JSON of a counter or of a part of a histogram (observability.meter.Part) → its sum over all processes.
        self.meters = f"{prefix}meters"
        # STREAM. One entry per mutation, capped at about 10,000.
        self.events = f"{prefix}events"

    def work(self, kind: WorkKind, name: str) -> str:
        """HASH. The work of one node, there while something is queued, waiting or running.

        gen         number of marks so far
        urgency     the most urgent of them
        sent        while queued: until when the message counts as on its way
        sends       messages since the last claim, for the back-off of `sweep`
        not_before  while waiting: until when
        token, fence, lease (its end), seen (gen at the claim)   while claimed
        kick        news that ends a wait came since the last claim
        news        while claimed: whether it had come before the claim

        `name` "" gives the prefix of all of a kind.
        """
        return f"{self._prefix}work:{kind}:{name}"

    def pending(self, kind: WorkKind) -> str:
        """ZSET. Node → when its work is overdue: end of `sent`, `not_before` or `lease`.

        Everything queued, waiting or running; worker processes are scaled on its size.
        """
        return f"{self._prefix}pending:{kind}"

    def facts(self, instance_id: str) -> str:
        """HASH. What is known of one instance; forgotten a day after the last write.

        interfaces    JSON list; describes and mutations write it
        described_at  start of the last accepted read
        mutated_at    when the last mutation has certainly ended
        version       number of writes
        tries         reads since then that could not be entered
        fence         of the claim that spent or wrote last
        in_air        there while a mutation's outcome isn't recorded, or contradicted the facts
        doubted_at    start of the first read that missed something
        """
        return f"{self._prefix}facts:{instance_id}"

    def budget(self, action: str) -> str:
        """HASH. The token bucket of one EC2 action; forgotten after an idle hour (then full again).

        tokens, at    the fill, and when it was computed
        factor        share of the refill rate at `halved_at`; grows back by 5 % of the rate a second
        halved_at     when EC2's throttling last halved it
        throttled_at  when EC2 last throttled: nobody spends for a second after that
        promised      the time for which the last of those who wait was told to come back
        """
        return f"{self._prefix}budget:{action}"

    def breaker(self, action: str) -> str:
        """HASH. There while the breaker of one EC2 action is open; forgotten a day after it was opened.

        until  from when on it may be probed
        why    for people
        probe  end of the lease of the one probe under way
        """
        return f"{self._prefix}breaker:{action}"

    def queue(self, name: str) -> str:
        """LIST. The messages that wait in one of Celery's queues; Celery's own, only looked at."""
        return f"{self.broker}{name}"

    def slot(self, name: str) -> str:
        """STRING. Taken for a period by whoever starts what is due; the lifetime is the period."""
        return f"{self._prefix}slot:{name}"
