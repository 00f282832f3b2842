"""Shared state at a glance, for people and for monitoring: reads only, the whole in a few round trips.

All times are Redis' own, in seconds since 1970. Nodes and their figures are not here: they cost a plan
each (`services.inspect`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eni_tasks.model.network import SubnetId, Value
from eni_tasks.ports.work import Pause, WorkKind


class WorkLook(Value, frozen=True):
    """The work of one kind: `pending_count` is all of it; what is neither claimed nor waiting is queued.

    `claimed_count` entries are being worked on, `waiting_count` entries are in a back-off or wait for
    a budget. What is overdue should have been served by now; the sweep sends it again.
    """

    pending_count: int
    claimed_count: int
    waiting_count: int
    overdue_count: int
    oldest_overdue_seconds: float


class BudgetLook(Value, frozen=True):
    """The token bucket of one EC2 action; `size` 0 means that there is no budget.

    `share` is the part of the refill rate that is in force: 1, or less since EC2 throttled.
    `throttled_at` is when EC2 last did, None if not within the hour.
    """

    size: float
    refill_per_second: float
    tokens: float
    share: float
    throttled_at: float | None


class BreakerLook(Value, frozen=True):
    """An open breaker: nobody makes that call; from `until` on one caller at a time may probe."""

    until: float
    why: str


class SubnetLook(Value, frozen=True):
    """A subnet of the known VPCs: `free` addresses when it was described, `reserved` of them taken since.

    `benched_until` is set while nobody chooses the subnet, because it said that it is full.
    """

    id: SubnetId
    availability_zone: str
    free: int
    reserved: int
    benched_until: float | None

    @property
    def available(self) -> int:
        """Addresses that can still be taken; never negative."""
        return max(0, self.free - self.reserved)


class Look(Value, frozen=True):
    """Everything but the nodes, as of `now`.

    `epoch` is None when Redis was emptied and no watcher has noticed yet, `infrastructure_at` (when the
    description of VPCs, subnets and groups began) and `inventory_at` (when the last complete read of all
    instances began) before the first. `orphans_count` is what
    the last pass of the collector saw and has not deleted. `needy_count` nodes lack addresses that they
    could have, the first of them since `needy_since`.
    """

    now: float
    epoch: str | None
    pause: Pause | None
    work: dict[WorkKind, WorkLook]
    queues: dict[str, int]
    budgets: dict[str, BudgetLook]
    breakers: dict[str, BreakerLook]
    subnets: tuple[SubnetLook, ...]
    infrastructure_at: float | None
    inventory_at: float | None
    orphans_count: int
    needy_count: int
    needy_since: float | None


class Lookout(Protocol):
    """Looking, and changing nothing."""

    def look(self, queues: Sequence[str]) -> Look:
        """Read everything.

        Args:
            queues: names of the Celery queues whose waiting messages are counted.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        ...
