"""The journal's entry for an interface in the making: what was intended, and the step reached."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from eni_tasks.errors import InvalidInput, LeaseLost
from eni_tasks.model.network import Interface, Value
from eni_tasks.model.plan import CreateInterface
from eni_tasks.ports.state import Outcome, Store
from eni_tasks.ports.work import Claim, Reservation

NOTHING_ELSE = Outcome()


class SagaStep(StrEnum):
    """The step that was reached; the next one may be in flight."""

    INTENT = "intent"  # token and parameters are written; create may have happened
    CREATED = "created"  # the interface exists; it was not attached
    ATTACHING = "attaching"  # attach may have happened
    ATTACHED = "attached"  # it is the instance's; marking may have happened
    UNDO = "undo"  # it is to be deleted; that may have happened


class Saga(Value, frozen=True):
    """One interface in the making.

    The token belongs to exactly these parameters: a repeated create answers the same interface.
    `begun_at` is Redis seconds, `why` says what led to UNDO.
    """

    step: SagaStep
    token: str
    request: CreateInterface
    reservation: Reservation
    begun_at: float
    interface: Interface | None = None
    device_index: int = 0
    why: str = ""

    @property
    def made(self) -> Interface:
        """The interface; there is one from CREATED on."""
        if self.interface is None:
            raise InvalidInput(f"journal entry of token {self.token}: no interface at step {self.step}")
        return self.interface


class Journal:
    """The nodes' journals; only a live claim can write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, claim: Claim, saga: Saga, outcome: Outcome = NOTHING_ELSE) -> None:
        """Write the step that was reached, together with what else came of it.

        Raises:
            LeaseLost: the claim is over; nothing was written.
        """
        if not self._store.record(claim, msgspec.structs.replace(outcome, journal=encode(saga))):
            raise LeaseLost(f"node {claim.name}: its claim ran out at step {saga.step}; another worker resumes")

    def strike_out(self, claim: Claim, outcome: Outcome = NOTHING_ELSE) -> None:
        """End the saga, together with what else came of its last step.

        Raises:
            LeaseLost: the claim is over; the next one looks at the last step once more.
        """
        if not self._store.record(claim, msgspec.structs.replace(outcome, journal=b"")):
            raise LeaseLost(f"node {claim.name}: its claim ran out after the last step; another worker looks")


encode = msgspec.json.encode


def decode(entry: bytes) -> Saga:
    """Read a journal entry.

    Raises:
        InvalidInput: it isn't one; nothing is done on an entry that can't be read.
    """
    try:
        return msgspec.json.decode(entry, type=Saga)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"journal entry can't be read ({error}): {entry[:200]!r}") from error
