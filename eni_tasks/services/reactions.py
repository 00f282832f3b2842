"""What follows from each kind of refusal, for the node at hand: one table, one place.

Throttling and unclear answers never lead to creating an interface; account-wide trouble is the
breaker's business and costs the node only a wait.
"""

from __future__ import annotations

import random

import msgspec

from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.network import SubnetId
from eni_tasks.model.node import Snapshot
from eni_tasks.ports.state import Outcome, Store
from eni_tasks.ports.work import Claim
from eni_tasks.services.saga import NOTHING_ELSE
from eni_tasks.services.step import Step

BENCH_SECONDS = 120.0  # as AWS's own controllers do after "subnet full"
NOT_RUNNING_SECONDS = 60.0
ACCOUNT_WAIT_SECONDS = 60.0

# What EC2 said contradicts what we know, or says nothing at all.
_IN_DOUBT = frozenset(
    {Ec2Reaction.INTERFACE_FULL, Ec2Reaction.INSTANCE_FULL, Ec2Reaction.STALE_VIEW, Ec2Reaction.AMBIGUOUS}
)


class Reactions:
    """Turns a refusal into the step's outcome and its lasting consequences."""

    def __init__(self, store: Store, *, settle_seconds: float, busy_seconds: float) -> None:
        self._store = store
        self._settle_seconds = settle_seconds
        self._busy_seconds = busy_seconds

    def to(
        self,
        error: Ec2Error,
        claim: Claim,
        snapshot: Snapshot,
        subnet_id: SubnetId,
        outcome: Outcome = NOTHING_ELSE,
    ) -> Step:
        """React to a refused mutation.

        Args:
            error: what EC2 said.
            claim: the right to the node.
            snapshot: what the decision was based on.
            subnet_id: where the addresses were to come from.
            outcome: what else is to be written down, unless the answer is ambiguous.

        Returns:
            The step; a benched subnet lets the run plan again at once, everything else ends it.

        Raises:
            LeaseLost: the journal is no longer ours to write.
        """
        node, memory = snapshot.node, snapshot.memory
        in_doubt = error.reaction in _IN_DOUBT
        if error.reaction is not Ec2Reaction.AMBIGUOUS:
            refused = msgspec.structs.replace(outcome, instance_id=node.instance_id, doubt=in_doubt)
            if not self._store.record(claim, refused) and outcome.journal is not None:
                raise LeaseLost(f"node {node.name}: its claim ran out after {error.action}; another worker goes on")
        if in_doubt:
            # Nothing more happens to the node before a read that the mutation can't have overtaken.
            lag = self._busy_seconds if error.reaction is Ec2Reaction.AMBIGUOUS else 0.0
            self._store.want_reads([node.name], delay_seconds=lag + self._settle_seconds)
        text = f"{error.action} for instance {node.instance_id}: {error.code}: {error.message}"
        match error.reaction:
            case Ec2Reaction.SUBNET_FULL:
                self._store.bench(subnet_id, BENCH_SECONDS)
                return Step(did=f"subnet {subnet_id} is full", trouble=text)
            case Ec2Reaction.INSTANCE_FULL:
                # How many fit is learned from the read that follows: we may have known too few.
                full = msgspec.structs.replace(memory, full_at=self._store.now())
                return Step(stop=True, trouble=text, memory=full)
            case Ec2Reaction.NOT_RUNNING:
                until = self._store.now() + NOT_RUNNING_SECONDS
                stopped = msgspec.structs.replace(memory, not_running_until=until)
                return Step(stop=True, trouble=text, memory=stopped, again_after_seconds=NOT_RUNNING_SECONDS + 1)
            case Ec2Reaction.ACCOUNT_WIDE:
                wait = ACCOUNT_WAIT_SECONDS * random.uniform(1.0, 1.5)  # noqa: S311 - jitter, no secret
                return Step(stop=True, trouble=text, again_after_seconds=wait)
            case Ec2Reaction.RETRY_LATER if error.throttled:
                wait = random.uniform(1.0, 4.0)  # noqa: S311 - jitter, no secret
                return Step(stop=True, again_after_seconds=wait)
            case _:
                return Step(stop=True, failed=True, trouble=text)
