"""Every Redis key of a deployment: name, type, content, lifetime. No key is named anywhere else.

All keys of a cluster share one hash tag, so that scripts may touch several of them, also on a
server in cluster mode. `v1` is the layout: a change that neighbouring versions could not read gets
another number. Times are Redis' own, in whole milliseconds. A key without a lifetime goes with the
node, the work or the entry that it describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eni_tasks.model.work import WorkKind


# The types of the keys below: by name, or by what stands before the first colon and the colon.
_TYPES = {
    **dict.fromkeys(("fence", "generation", "slot:"), "string"),
    **dict.fromkeys(("nodes", "versions", "memory", "publish-failures", "journal", "infrastructure", "limits"), "hash"),
    **dict.fromkeys(("ledger", "switches", "generation:times", "counters"), "hash"),
    **dict.fromkeys(("work:", "facts:", "bucket:", "breaker:"), "hash"),
    **dict.fromkeys(("reads", "deficits", "vpcs", "ledger:entries", "cooldowns", "orphans", "removed"), "zset"),
    **dict.fromkeys(("pending:", "claimants:"), "zset"),
    "events": "stream",
}


class Keys:
    """The key names of one cluster.

    Args:
        cluster: the cluster's name.
    """

    def __init__(self, cluster: str) -> None:
        prefix = f"{{eni:{cluster}}}:v1:"
        self.prefix = prefix

        # STRING, INT. The last fence. Never below the clock, so that it grows even after Redis lost its data.
        self.fence = f"{prefix}fence"

        # HASH. Node → the CiliumNode as it is stored, JSON.
        self.nodes = f"{prefix}nodes"
        # HASH. Node → "<resourceVersion> <uid> <instance id> <instance type>" of that object: scripts need not
        # decode JSON.
        self.versions = f"{prefix}versions"
        # HASH. Node → Memory, JSON.
        self.memory = f"{prefix}memory"
        # HASH. Node → why its object could not be written lately; absent after a good run.
        self.publish_failures = f"{prefix}publish-failures"
        # HASH. Node → how many of its pods wait; expires while no watcher follows the pods.
        self.pending_pods = f"{prefix}pending-pods"
        # HASH. Node → the creation of an interface that is under way (services.create_interface.Creation), JSON.
        self.journal = f"{prefix}journal"
        # ZSET. Node whose instance is to be read → due; while it is being read: end of the reader's lease.
        self.reads = f"{prefix}reads"

        # ZSET. Node that lacks addresses which it could have → since when.
        self.deficits = f"{prefix}deficits"

        # HASH. json: Infrastructure; described_at: readers fetch the big value only when this has changed.
        self.infrastructure = f"{prefix}infrastructure"
        # ZSET. VPC → when its subnets were last described because a node is in it; kept for a day.
        self.vpcs = f"{prefix}vpcs"
        # HASH. Instance type → Limits, JSON; or "-<until>" for a type that EC2 does not know.
        self.limits = f"{prefix}limits"
        # HASH. Subnet → addresses held against its free count: the sum of its entries.
        self.ledger = f"{prefix}ledger"
        # ZSET. "<subnet>|<id>|<count>" → when the taking has certainly ended. A description of the subnets
        # that began later (plus the settle time) has the addresses in its free counts, and the entry is deleted.
        self.ledger_entries = f"{prefix}ledger:entries"
        # ZSET. Subnet that reported that it is full → end of its cooldown.
        self.cooldowns = f"{prefix}cooldowns"
        # HASH. Subnet that reported that it has no free /28 prefix → "<until> <wait>": the end and the length of the
        # time in which it is asked for none; deleted a day after the last report.
        self.no_prefix = f"{prefix}no-prefix"

        # ZSET. Interface that passes of the collector have seen unattached, in no journal → since when. Deleted
        # two hours after the last pass. If it is lost, the waits start again.
        self.orphans = f"{prefix}orphans"
        # ZSET. Instance whose node was removed → when; kept for an hour. Without it what the node left behind
        # only waits longer.
        self.removed = f"{prefix}removed"

        # HASH. pause: Pause, JSON, while mutations are paused. read_at: start of the last complete read of all
        # instances. read_failure: why the last read failed, if it did.
        self.switches = f"{prefix}switches"
        # Prefix of Celery's own keys, so that several deployments can share a Redis.
        # `connected`, a STRING of ours among them, is written by each new connection of Celery, and lives for a second.
        self.broker = f"{prefix}broker:"
        # STRING. Id of the state generation, random; absent after Redis lost its data.
        self.generation = f"{prefix}generation"
        # HASH. began_at: when the generation began. quiet_until: EC2 calls of an earlier generation may be
        # running until then. run_id: the run of the server in which it was last confirmed. beat: how often it was.
        # restores: how often the API server's objects went back in time.
        self.generation_times = f"{prefix}generation:times"
        # HASH. JSON of a counter or of a part of a histogram (observability.counters.Series) → its sum over all
        # processes.
        self.counters = f"{prefix}counters"
        # STREAM. One entry per mutation, capped at about 10,000.
        self.events = f"{prefix}events"

    def type_of(self, key: str) -> str | None:
        """The type that a key must have, as Redis' TYPE names it; None if the key is not one of these."""
        name = key.removeprefix(self.prefix)
        return _TYPES.get(name) or _TYPES.get(name.partition(":")[0] + ":")

    def work(self, kind: WorkKind, name: str) -> str:
        """HASH. One piece of work, present while it is queued, waiting or running.

        revision    how often it was enqueued so far
        urgency     the most urgent of these
        sent        while queued: until when the message counts as on its way
        sends       messages since the last claim, for the back-off of `requeue`
        not_before  while waiting: until when
        token, fence, lease (its end), seen_revision (at the claim)   while claimed
        unserved_since  while no run has begun since: when it was first enqueued, or the end of its wait
        wake        it was enqueued since the last claim in a way that ends a wait
        woken       while claimed: whether `wake` was set before the claim

        `name` "" gives the prefix of all of a kind.
        """
        return f"{self.prefix}work:{kind}:{name}"

    def pending(self, kind: WorkKind) -> str:
        """ZSET. Name of the work → when it is overdue: end of `sent`, `not_before` or `lease`.

        Everything queued, waiting or running.
        """
        return f"{self.prefix}pending:{kind}"

    def facts(self, instance_id: str) -> str:
        """HASH. What is known of one instance; deleted a day after the last write.

        interfaces         JSON list; describe calls and mutations write it
        described_at       start of the last accepted read
        mutated_at         when the last mutation has certainly ended
        version            number of writes
        tries              reads since then that could not be accepted
        fence              of the claim that was last permitted a mutation or recorded one
        mutation_pending   present while a mutation's outcome isn't recorded, or contradicted the facts
        unconfirmed_since  start of the first read that lacked something known
        lacking            JSON: what reads lack of the interfaces → start of the first such read
        released           JSON: addresses and prefixes that were given back lately → when
        problem            why the last read could not be used
        """
        return f"{self.prefix}facts:{instance_id}"

    def claimants(self, instance_id: str) -> str:
        """ZSET. Node that names the instance → since when (ms, see put_nodes.lua). The first one owns the instance.

        `instance_id` "" gives the prefix of all.
        """
        return f"{self.prefix}claimants:{instance_id}"

    def bucket(self, action: str) -> str:
        """HASH. The token bucket of one EC2 action; deleted after an idle hour (then full again).

        tokens, at    the fill, and when it was computed
        factor        share of the refill rate at `halved_at`; grows back by 5 % of the rate a second
        halved_at     when EC2's throttling last halved it
        throttled_at  when EC2 last throttled: no token is given out for a second after that
        next_promise  the time for which the last of the waiting callers was asked to return
        """
        return f"{self.prefix}bucket:{action}"

    def breaker(self, action: str) -> str:
        """HASH. Present while the breaker of one EC2 action is open; deleted a day after it was opened.

        until  from when on it may be probed
        why    the reason, for people
        probe  end of the lease of the one probe under way
        """
        return f"{self.prefix}breaker:{action}"

    def queue(self, name: str) -> str:
        """LIST. The messages that wait in one of Celery's queues; Celery's own, only read here.

        Worker processes are scaled on its length.
        """
        return f"{self.broker}{name}"

    def slot(self, name: str) -> str:
        """STRING. Taken for a period by the process that starts a periodic pass; the lifetime is the period."""
        return f"{self.prefix}slot:{name}"
