"""The journal's entry for an interface that is being created: what was intended, and the step reached."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import Interface, Value
from eni_tasks.model.plan import CreateInterface
from eni_tasks.model.state import Reservation


class CreationStep(StrEnum):
    """The step that was reached; the next call may have been sent."""

    INTENT = "intent"  # token and parameters are written; create may have happened
    CREATED = "created"  # the interface exists; it was not attached
    ATTACHING = "attaching"  # attach may have happened
    ATTACHED = "attached"  # it is the instance's; delete-on-termination may be set
    UNDO = "undo"  # it is to be deleted; that may have happened


class Creation(Value, frozen=True):
    """One interface that is being created.

    The token belongs to exactly these parameters: a repeated create answers the same interface. `begun_at` is in
    Redis seconds, `generation` the state generation in which the last step was taken. `why` says what led to
    UNDO.
    """

    step: CreationStep
    token: str
    request: CreateInterface
    reservation: Reservation
    begun_at: float
    interface: Interface | None = None
    device_index: int = 0
    generation: str = ""
    why: str = ""

    @property
    def created(self) -> Interface:
        """The interface; there is one from CREATED on."""
        if self.interface is None:
            raise InvalidInput(f"journal entry of token {self.token}: no interface at step {self.step}")
        return self.interface


encode = msgspec.json.encode


def decode(entry: bytes) -> Creation:
    """Decode a journal entry.

    Raises:
        InvalidInput: it isn't one; nothing is done on an entry that can't be decoded.
    """
    try:
        return msgspec.json.decode(entry, type=Creation)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"journal entry can't be decoded ({error}): {entry[:200]!r}") from error


def readable(entry: bytes) -> bool:
    """Whether a worker can continue with an entry."""
    try:
        decode(entry)
    except InvalidInput:
        return False
    return True


def explain(entry: bytes) -> str:
    """Say in a sentence what an entry says, also one that no worker can decode."""
    try:
        creation = decode(entry)
    except InvalidInput:
        return f"The journal entry can't be decoded, so no worker continues: {entry.decode(errors='replace')}"
    what = creation.interface.id if creation.interface else f"an interface in {creation.request.subnet_id}"
    why = f" ({creation.why})" if creation.why else ""
    return f"The journal is at step {creation.step} of creating {what}{why}; the next run continues from there."
