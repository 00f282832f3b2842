"""Waiting for a condition: the one way in which a test lets real time pass."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEADLINE_SECONDS = 120.0  # no test is about how fast this machine is
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


@contextmanager
def waits_at_most(seconds: float) -> Iterator[None]:
    """Fail if this thread waits longer for others than `seconds`; to wait for a busy CPU does not count."""
    begun = _waited_seconds()
    yield
    waited = _waited_seconds() - begun
    assert waited < seconds, f"waited for {waited:.1f} s"


def _waited_seconds() -> float:
    # Nanoseconds in which this thread ran, and in which it was ready to run.
    ran, was_ready, _ = map(int, Path("/proc/thread-self/schedstat").read_text().split())
    return time.monotonic() - (ran + was_ready) / 1e9
