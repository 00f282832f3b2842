"""What stands before a call: the rate of its action, rights, and scripted faults."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.knobs import UNFILTERED, Bucket, Fault
from eni_tasks.sandbox.ec2.refusals import throttled, unauthorized

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.sandbox.ec2.query import Query
    from eni_tasks.sandbox.ec2.world import World


class Throttle:
    """One token bucket per action, as the knobs size them."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}  # by bucket: tokens, and when that was

    def spend(self, world: World, action: str, query: Query) -> None:
        """Take a token.

        Raises:
            Refused: there is none.
        """
        buckets = world.knobs.buckets
        unfiltered = action + UNFILTERED
        name = unfiltered if unfiltered in buckets and not query.narrowed() else action
        bucket = buckets.get(name)
        if bucket is None:
            return
        tokens = self._tokens(name, bucket, world.clock())
        if tokens < 1:
            raise throttled()
        self._left[name] = (tokens - 1, world.clock())

    def _tokens(self, name: str, bucket: Bucket, now: float) -> float:
        tokens, since = self._left.get(name, (bucket.size, now))
        return min(bucket.size, tokens + (now - since) * bucket.refill_per_second)


class Faults:
    """The scripted faults that are still to come, in the order in which they were scripted."""

    def __init__(self) -> None:
        self._pending: list[tuple[Fault, int]] = []  # with the number of calls matched so far

    def add(self, faults: Iterable[Fault]) -> None:
        """Script faults, behind the present ones."""
        self._pending += [(fault, 0) for fault in faults]

    def clear(self) -> None:
        """Forget all faults."""
        self._pending.clear()

    def pending(self) -> list[Fault]:
        """Returns the faults that have not been used up."""
        return [fault for fault, _ in self._pending]

    def take(self, world: World, action: str, query: Query) -> Fault | None:
        """Returns the first fault that is due for a call, which those scripted after it don't see."""
        due: Fault | None = None
        left: list[tuple[Fault, int]] = []
        for fault, matched in self._pending:
            count = matched
            if due is None and fnmatchcase(action, fault.action) and _concerns(world, query, fault.resource):
                count += 1
                if count > fault.skip:
                    due = fault
            if fault.times is None or count < fault.skip + fault.times:
                left.append((fault, count))
        self._pending = left
        return due


def _concerns(world: World, query: Query, resource: str) -> bool:
    if not resource:
        return True
    values = query.values()
    attached = {world.attachments[value] for value in values if value in world.attachments}
    for identifier in values | attached:
        interface = world.interfaces.truth.by_id.get(identifier)
        if interface is not None:
            values |= {interface.id, interface.subnet_id, interface.instance_id}
    return resource in values


def check_rights(world: World, action: str) -> None:
    """Refuse an action that is denied."""
    if any(fnmatchcase(action, denied) for denied in world.knobs.denied_actions):
        raise unauthorized()
