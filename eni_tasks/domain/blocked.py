"""Expected trouble as a value: what cannot be done, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from eni_tasks.model.plan import Reason


class Blocked(NamedTuple):
    """A step that is not possible now; `sentence` tells a person why and what to do."""

    reason: Reason
    sentence: str


def utc(seconds: float) -> str:
    """Give a time as sentences do: absolute, since one that changed with each look would be written each time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
