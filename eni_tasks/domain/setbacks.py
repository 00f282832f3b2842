"""How long a step beside the pool waits after it could not be taken: 30 s, doubling to 10 minutes.

Trouble that is not the node's own (throttling, no answer, missing rights) lets it wait for no more than a minute.

IPv6 and static addresses are independent of the pool and of each other. A step of one that fails is noted, and the run
goes on with the others; the next periodic read after the wait offers the step again.
"""

from __future__ import annotations

from eni_tasks.model.node import Setback

FIRST_SECONDS = 30.0
LONGEST_SECONDS = 600.0
SHARED_LONGEST_SECONDS = 60.0


def again(before: Setback, why: str, now: float, *, about: str = "", shared: bool = False) -> Setback:
    """Note that a step could not be taken.

    Args:
        before: what is noted of the tries before.
        why: a sentence for people.
        now: Redis' time in seconds.
        about: what the step was about; tries for another thing don't count.
        shared: whether the trouble is not the node's own.
    """
    count = before.count + 1 if before.about == about else 1
    wait = min(SHARED_LONGEST_SECONDS if shared else LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(count - 1, 12))
    return Setback(count=count, until=now + wait, why=why, about=about)


def holds(setback: Setback, now: float, *, about: str = "") -> bool:
    """Say whether a step is not to be tried yet; arguments as of `again`."""
    return setback.about == about and now < setback.until
