"""Assigning more addresses to an interface that is attached: reserve, spend, call, record."""

from __future__ import annotations

import msgspec

from eni_tasks.errors import Ec2Error, LeaseLost
from eni_tasks.model.plan import Assign
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.ports.state import Outcome, Store
from eni_tasks.ports.work import Claim, Draw
from eni_tasks.services.gather import Gathered
from eni_tasks.services.mutating import Mutator, reserved
from eni_tasks.services.reactions import Reactions
from eni_tasks.services.step import Step

ACTION = "AssignPrivateIpAddresses"


class Assigner:
    """Carries out `Assign`."""

    def __init__(self, store: Store, ec2: Ec2, mutator: Mutator, reactions: Reactions, meter: Meter) -> None:
        self._store = store
        self._ec2 = ec2
        self._mutator = mutator
        self._reactions = reactions
        self._meter = meter

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
            LeaseLost, Postponed, AddressesTaken: nothing was sent, or another worker has gone on since.
        """
        snapshot, node = gathered.snapshot, gathered.snapshot.node
        reservation = reserved(action.subnet_id, action.count)
        try:
            got = self._mutator.call(
                claim,
                ACTION,
                lambda: self._ec2.assign_addresses(action.interface_id, action.count),
                urgent=urgent,
                instance_id=node.instance_id,
                draw=Draw(
                    reservation=reservation,
                    free=snapshot.infrastructure.subnets[action.subnet_id].free,
                    hold_seconds=self._mutator.busy_seconds,
                ),
            )
        except Ec2Error as error:
            return self._reactions.to(error, claim, snapshot, action.subnet_id, Outcome(reservation=reservation))
        self._meter.count("ipam_ip_allocation_ops", {"subnet_id": action.subnet_id}, len(got))
        # A repeated address (a describe saw it first) must not be entered twice.
        grown = tuple(
            msgspec.structs.replace(known, addresses=tuple(dict.fromkeys((*known.addresses, *got))))
            if known.id == action.interface_id
            else known
            for known in snapshot.interfaces or ()
        )
        fields: dict[str, str | int | float] = {
            "node": node.name,
            "interface": action.interface_id,
            "subnet": action.subnet_id,
            "count": len(got),
        }
        outcome = Outcome(
            instance_id=node.instance_id,
            interfaces=grown,
            reservation=reservation,
            taken=len(got),
            event=(ACTION, fields),
        )
        if not self._store.record(claim, outcome):
            raise LeaseLost(
                f"node {node.name}: a later claim wrote already; {len(got)} new addresses are for it to read"
            )
        return Step(did=f"assigned {len(got)} addresses to {action.interface_id}", changed=True, interfaces=grown)
