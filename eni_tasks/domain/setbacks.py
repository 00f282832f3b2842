"""How long a step beside the pool waits after it could not be taken: 30 s, doubling to 10 minutes.

IPv6 and static addresses are independent of the pool and of each other. A step of one that fails is noted, and the run
goes on with the others; the next periodic read after the wait offers the step again.
"""

from __future__ import annotations

from eni_tasks.model.node import Setback
from eni_tasks.model.plan import utc

FIRST_SECONDS = 30.0
LONGEST_SECONDS = 600.0


def again(before: Setback, why: str, now: float, *, about: str = "") -> Setback:
    """Note that a step could not be taken.

    Args:
        before: what is noted of the tries before.
        why: a sentence for people.
        now: Redis' time in seconds.
        about: what the step was about; tries for another thing don't count.
    """
    count = before.count + 1 if before.about == about else 1
    wait = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(count - 1, 12))
    return Setback(count=count, until=now + wait, why=why, about=about)


def holds(setback: Setback, now: float, *, about: str = "") -> bool:
    """Say whether a step is not to be tried yet; arguments as of `again`."""
    return setback.about == about and now < setback.until


def told(setback: Setback) -> str:
    """Say when a step is tried again."""
    return f"It is tried again at {utc(setback.until)}."
