"""Waiting for a condition: the one way in which a test lets real time pass."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

DEADLINE_SECONDS = 60.0  # no test is about how fast this machine is
POLL_SECONDS = 0.02


def until(condition: Callable[[], Any], what: str, *, seconds: float = DEADLINE_SECONDS) -> Any:
    """Wait for a condition; returns what it gave.

    Args:
        condition: is asked again and again until its answer is true.
        what: the condition in words, for the failure.
        seconds: how long it may take.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(POLL_SECONDS)
    return found
