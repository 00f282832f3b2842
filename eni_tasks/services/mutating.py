"""One EC2 mutation: the fence and the budget before it, the account's wounds after it.

Nothing else calls a mutating action, so that no call can pass without a claim and a token.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from eni_tasks.errors import Ec2Error, Ec2Reaction, LeaseLost, TransientError
from eni_tasks.model.network import InstanceId, SubnetId
from eni_tasks.observability.logs import logger
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.work import Budgets, Claim, Draw, Grant, Reservation, Spent

T = TypeVar("T")

NO_INSTANCE = InstanceId("")
# Waited on the spot; anything longer gives the worker back. Who is not urgent must not hold it against who is.
SHORT_WAIT_SECONDS = {True: 1.0, False: 0.25}
BREAKER_SECONDS = 60.0  # account-wide trouble is probed this often, by one worker


class Postponed(TransientError):
    """The mutation may not be made now: budget, pause or breaker; nothing was sent."""


class AddressesTaken(TransientError):
    """Others hold the addresses that were to be drawn; nothing was sent, and planning again finds others."""


class Mutator:
    """Makes mutations on behalf of a claim; none any more once the process is `stopping`."""

    def __init__(self, budgets: Budgets, meter: Meter, stopping: threading.Event, *, timeout_seconds: float) -> None:
        self._budgets = budgets
        self._meter = meter
        self._stopping = stopping
        self.busy_seconds = busy_seconds(timeout_seconds)

    def call(  # noqa: PLR0913 - all that is decided right before a mutation
        self,
        claim: Claim,
        action: str,
        send: Callable[[], T],
        *,
        urgent: bool,
        instance_id: InstanceId = NO_INSTANCE,
        draw: Draw | None = None,
        journal: bytes = b"",
    ) -> T:
        """Make one mutation.

        Args:
            claim: the right to do so; checked in Redis at the last moment.
            action: EC2's name of the action, the name of its budget.
            send: the call itself.
            urgent: whether it may spend the last tokens.
            instance_id: the instance whose interfaces it changes, "" if none: its facts are in the
                air until the answer is recorded.
            draw: the addresses that it takes from a subnet; reserved if the call is made.
            journal: the node's entry; written if the call is made.

        Returns:
            What `send` returned.

        Raises:
            LeaseLost: another worker may hold the node.
            Postponed: not now; `retry_after_seconds` says when.
            AddressesTaken: the subnet has too few left.
            Ec2Error: EC2 refused, or the outcome is unclear.
        """
        if self._stopping.is_set():
            raise Postponed(f"{action} has to wait: this process ends, another goes on", 0.1)
        spend = partial(
            self._budgets.spend,
            claim,
            action,
            instance_id,
            urgent=urgent,
            busy_seconds=self.busy_seconds,
            draw=draw,
            journal=journal,
        )
        asked_at = time.monotonic()
        try:
            probing = _wait_for_token(spend, claim, action, SHORT_WAIT_SECONDS[urgent])
        finally:
            waited_seconds = time.monotonic() - asked_at
            self._meter.observe("ec2_api_rate_limit_duration_seconds", {"operation": action}, waited_seconds)
        try:
            answer = send()
        except Ec2Error as error:
            if error.throttled:
                self._budgets.throttled(action)
            elif error.reaction is Ec2Reaction.ACCOUNT_WIDE:
                self._budgets.open_breaker(action, f"{error.code}: {error.message}", BREAKER_SECONDS)
            logger().warning(
                "ec2_refused", action=action, code=error.code, error=error.message, reaction=error.reaction.value
            )
            raise
        if probing:
            self._budgets.close_breaker(action)
        return answer


def busy_seconds(timeout_seconds: float) -> float:
    """For how long a mutation may go on whose answer is waited for at most `timeout_seconds`."""
    return timeout_seconds + 5.0


def reserved(subnet_id: SubnetId, count: int) -> Reservation:
    """Make a reservation under a new id; the ledger knows of it once a mutation is let through with it."""
    return Reservation(subnet_id=subnet_id, id=uuid.uuid4().hex[:12], count=count)


def _wait_for_token(spend: Callable[[], Spent], claim: Claim, action: str, short_seconds: float) -> bool:
    """Ask until the mutation is let through; says whether it probes a breaker."""
    waited = 0.0
    while True:
        spent = spend()
        if spent.grant is Grant.OK:
            return spent.why == "probe"
        if spent.grant is Grant.LOST:
            raise LeaseLost(f"node {claim.name}: its claim ran out before {action}; another worker goes on")
        if spent.grant is Grant.TAKEN:
            raise AddressesTaken("others took the subnet's addresses first")
        waited += spent.wait_seconds
        if spent.grant is not Grant.WAIT or waited > short_seconds:
            why = spent.why or f"the budget of {action} is spent"
            raise Postponed(f"{action} has to wait: {why}", max(spent.wait_seconds, 0.1))
        time.sleep(spent.wait_seconds)
