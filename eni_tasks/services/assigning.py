"""Assigning more addresses to an interface that is attached: reserve, spend, call, record."""

from __future__ import annotations

import msgspec

from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost
from eni_tasks.model.plan import Assign
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import Claim
from eni_tasks.services.gather import Gathered
from eni_tasks.services.mutating import Mutator, Postponed
from eni_tasks.services.reactions import Reactions
from eni_tasks.services.step import Step

ACTION = "AssignPrivateIpAddresses"


class Assigner:
    """Carries out `Assign`."""

    def __init__(self, store: Store, ec2: Ec2, mutator: Mutator, reactions: Reactions) -> None:
        self._store = store
        self._ec2 = ec2
        self._mutator = mutator
        self._reactions = reactions

    def run(self, claim: Claim, gathered: Gathered, action: Assign, *, urgent: bool) -> Step:
        """Assign the addresses and enter what EC2 answered.

        Args:
            claim: the right to change the node.
            gathered: what the plan was made from.
            action: the plan's action.
            urgent: whether it may spend the last tokens of the budget.

        Returns:
            What came of it; refusals included.

        Raises:
            LeaseLost, Postponed: nothing was sent.
        """
        snapshot, node = gathered.snapshot, gathered.snapshot.node
        interfaces = snapshot.interfaces or ()
        reservation = self._store.reserve(
            action.subnet_id,
            action.count,
            free=snapshot.infrastructure.subnets[action.subnet_id].free,
            hold_seconds=self._mutator.busy_seconds,
        )
        if reservation is None:
            return Step(did=f"others took the addresses of {action.subnet_id} first")
        try:
            got = self._mutator.call(
                claim,
                ACTION,
                lambda: self._ec2.assign_addresses(action.interface_id, action.count),
                urgent=urgent,
                instance_id=node.instance_id,
            )
        except (LeaseLost, Postponed):
            self._store.settle(reservation, 0)
            raise
        except Ec2Error as error:
            if error.reaction is not Ec2Reaction.AMBIGUOUS:
                self._store.settle(reservation, 0)
            return self._reactions.to(error, claim, snapshot, action.subnet_id)
        # A repeated address (a describe saw it first) must not be entered twice.
        grown = tuple(
            msgspec.structs.replace(known, addresses=tuple(dict.fromkeys((*known.addresses, *got))))
            if known.id == action.interface_id
            else known
            for known in interfaces
        )
        if not self._store.record(claim, node.instance_id, grown):
            raise LeaseLost(
                f"node {node.name}: a later claim wrote already; {len(got)} new addresses are for it to read"
            )
        self._store.settle(reservation, len(got))
        self._store.event(
            ACTION, {"node": node.name, "interface": action.interface_id, "subnet": action.subnet_id, "count": len(got)}
        )
        return Step(did=f"assigned {len(got)} addresses to {action.interface_id}", changed=True)
