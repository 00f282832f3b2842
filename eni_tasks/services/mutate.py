"""One EC2 mutation: the permission before it, and what a refusal means for the account after it.

No other module calls a mutating action, so no call is made without a claim and a token.
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
from eni_tasks.model.state import Outcome, Reservation
from eni_tasks.model.work import Claim
from eni_tasks.observability.counters import Counters
from eni_tasks.observability.logs import logger
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.services.lease_renewer import local_seconds
from eni_tasks.state import State
from eni_tasks.state.limiter import Acquired, AcquireResult, Draw

T = TypeVar("T")

NO_INSTANCE = InstanceId("")
# Waited on the spot; for anything longer the worker is given back. Work that is not urgent waits less, so that
# it does not hold a worker that urgent work needs.
SHORT_WAIT_SECONDS = {True: 1.0, False: 0.25}
SEND_WITHIN_SECONDS = 5.0  # of asking for the permission; a call that would be later is not sent
BREAKER_SECONDS = 60.0  # trouble of the whole account is probed this often, by one worker


class Postponed(TransientError):
    """The mutation may not be made now (rate limit, pause or breaker); nothing was sent.

    `trouble` is what people should know of it: that the breaker is open, and why; "" otherwise.
    """

    trouble = ""


class AddressesTaken(TransientError):
    """Other nodes hold the addresses that were to be reserved; nothing was sent, and a new plan finds others."""


class Mutator:
    """Makes mutations on behalf of a claim; none any more once the process is `stopping`.

    Args:
        state: the shared state.
        ec2: the calls.
        counters: what the process counts into.
        stopping: set when the process is asked to end.
        timeout_seconds: longest wait for one answer of EC2.
        settle_seconds: EC2's reads may lag this long behind its answers.
    """

    def __init__(  # noqa: PLR0913 - what every mutation needs, gathered once
        self,
        state: State,
        ec2: Ec2,
        counters: Counters,
        stopping: threading.Event,
        *,
        timeout_seconds: float,
        settle_seconds: float,
    ) -> None:
        self.state = state
        self.ec2 = ec2
        self.counters = counters
        self.stopping = stopping
        self.busy_seconds = busy_seconds(timeout_seconds)
        self.settle_seconds = settle_seconds

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
        seen_at: float | None = None,
    ) -> T:
        """Make one mutation.

        Args:
            claim: the right to do so; checked in Redis at the last moment.
            action: EC2's name of the action, which is the name of its token bucket.
            send: the call itself.
            urgent: whether it may take the last tokens.
            instance_id: the instance whose interfaces it changes, "" if none: the mutation counts as
                pending until the answer is recorded.
            draw: the addresses that it takes from a subnet; reserved if the call is made.
            journal: the node's entry; written if the call is made.
            seen_at: when that was read on which the call relies, by `local_seconds`; it is not sent long after.

        Returns:
            What `send` returned.

        Raises:
            LeaseLost: another worker may hold the node.
            Postponed: not now; `retry_after_seconds` says when.
            AddressesTaken: the subnet has too few left.
            Ec2Error: EC2 refused, or the outcome is unclear.
        """
        if self.stopping.is_set():
            raise Postponed(f"{action} has to wait: this process ends, another worker continues", 0.1)
        acquire = partial(
            self.state.limiter.acquire,
            claim,
            action,
            instance_id,
            urgent=urgent,
            busy_seconds=self.busy_seconds,
            draw=draw,
            journal=journal,
        )
        began_at = time.monotonic()
        try:
            acquired, asked_at = _wait_for_token(acquire, claim, action, SHORT_WAIT_SECONDS[urgent])
        finally:
            waited_seconds = time.monotonic() - began_at
            self.counters.observe("ec2_api_rate_limit_duration_seconds", {"operation": action}, waited_seconds)
        oldest_at = asked_at if seen_at is None else min(asked_at, seen_at)
        self._check_permission(claim, action, oldest_at, instance_id, draw)
        try:
            answer = send()
        except Ec2Error as error:
            if error.throttled:
                self.state.limiter.throttled(action)
            elif error.reaction is Ec2Reaction.ACCOUNT_WIDE:
                self.state.limiter.open_breaker(action, f"{error.code}: {error.message}", BREAKER_SECONDS)
            logger().warning(
                "ec2_refused", action=action, code=error.code, error=error.message, reaction=error.reaction.value
            )
            raise
        if acquired.probe:
            self.state.limiter.close_breaker(action)
        return answer

    def _check_permission(
        self, claim: Claim, action: str, asked_at: float, instance_id: InstanceId, draw: Draw | None
    ) -> None:
        """Refuse to send a call whose permission, or what it relies on, is too old.

        It could outlast the time that was permitted for it.
        """
        late_seconds = local_seconds() - asked_at
        if late_seconds < SEND_WITHIN_SECONDS:
            return
        reservation = draw.reservation if draw else None
        # Nothing was sent: unless a later claim was permitted a mutation, the facts are as they were.
        self.state.runs.record(claim, Outcome(instance_id=instance_id, reservation=reservation))
        logger().warning("call_not_sent", action=action, late_seconds=round(late_seconds, 1))
        raise Postponed(f"{action} was not sent: this process stood still or waited for {late_seconds:.0f} s", 0.1)


def busy_seconds(timeout_seconds: float) -> float:
    """For how long a mutation may run whose answer is waited for at most `timeout_seconds`."""
    return timeout_seconds + SEND_WITHIN_SECONDS


def new_reservation(subnet_id: SubnetId, count: int) -> Reservation:
    """Make a reservation under a new id; the ledger holds it once a mutation is permitted with it."""
    return Reservation(subnet_id=subnet_id, id=uuid.uuid4().hex[:12], count=count)


def _wait_for_token(
    acquire: Callable[[], Acquired], claim: Claim, action: str, short_seconds: float
) -> tuple[Acquired, float]:
    """Ask until the mutation is permitted; returns the permission, and when it was asked for (`local_seconds`)."""
    waited = 0.0
    while True:
        asked_at = local_seconds()
        acquired = acquire()
        match acquired.result:
            case AcquireResult.OK:
                return acquired, asked_at
            case AcquireResult.LOST:
                raise LeaseLost(f"node {claim.name}: its claim ran out before {action}; another worker continues")
            case AcquireResult.UNCONFIRMED:
                why = "Redis was restarted or failed over, and no watcher has confirmed its data yet"
                raise Postponed(f"{action} has to wait: {why}", acquired.wait_seconds)
            case AcquireResult.TAKEN:
                raise AddressesTaken("other nodes took the subnet's addresses first")
        waited += acquired.wait_seconds
        if acquired.result is not AcquireResult.WAIT or waited > short_seconds:
            why = acquired.why or f"no token is left for {action}"
            postponed = Postponed(f"{action} has to wait: {why}", max(acquired.wait_seconds, 0.1))
            postponed.trouble = str(postponed) if acquired.result is AcquireResult.BROKEN else ""
            raise postponed
        time.sleep(acquired.wait_seconds)
