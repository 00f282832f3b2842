"""What permits a call of EC2: one token bucket per action; for mutations also the claim, the pause and the breakers.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from eni_tasks.model.network import InstanceId, Value
from eni_tasks.model.state import Reservation
from eni_tasks.model.work import Claim, Pause
from eni_tasks.state.commands import encode
from eni_tasks.state.connection import DAY_MS, Connection, milliseconds
from eni_tasks.state.decoding import decoded, prose, text
from eni_tasks.state.keys import Keys

LIMITS = "DescribeInstanceTypes"  # open while the right is missing; it stops nothing but nodes of unknown types

_decode_pause = msgspec.json.Decoder(Pause).decode


class AcquireResult(StrEnum):
    """What `Limiter.acquire` answers."""

    OK = "ok"
    LOST = "lost"  # the claim has ended: no mutation
    WAIT = "wait"  # no token is left for this action: see `wait_seconds`
    PAUSED = "paused"  # a person paused all mutations
    BROKEN = "broken"  # the breaker of this action is open
    UNCONFIRMED = "unconfirmed"  # Redis was restarted or failed over, and no watcher has confirmed the state yet
    TAKEN = "taken"  # other nodes hold the addresses that were to be reserved


class Acquired(Value, frozen=True):
    """The answer of `acquire`. `wait_seconds` says when to ask again for WAIT, PAUSED and BROKEN.

    With `probe` an OK goes through an open breaker: the call's success closes it.
    """

    result: AcquireResult
    wait_seconds: float = 0.0
    why: str = ""
    probe: bool = False


class Draw(Value, frozen=True):
    """What a mutation takes from a subnet that has `free` addresses as described.

    The ledger holds them until the reservation is settled, or until a description that began `hold_seconds`
    later has them in its free count.
    """

    reservation: Reservation
    free: int
    hold_seconds: float


class Limiter:
    """Permissions for calls of EC2, shared by all workers.

    Args:
        connection: the way to Redis.
        buckets: per EC2 action the bucket's size and its refill per second; size 0, or no entry, means no limit.
    """

    def __init__(self, connection: Connection, buckets: Mapping[str, tuple[float, float]]) -> None:
        self._connection = connection
        self._keys = connection.keys
        self.buckets = buckets

    def acquire(  # noqa: PLR0913 - all that is decided in the one step
        self,
        claim: Claim,
        action: str,
        instance_id: InstanceId,
        *,
        urgent: bool,
        busy_seconds: float,
        draw: Draw | None = None,
        journal: bytes = b"",
    ) -> Acquired:
        """Check the claim, take a token and reserve addresses, in one step, right before a mutation.

        The mutation then counts as pending for up to `busy_seconds` (the call's time-out): a describe call
        that starts before it has certainly ended may not replace the instance's facts. Work that is not
        `urgent` may not take the last twentieth of a bucket. `journal` is written as the node's entry. Unless
        the answer is OK nothing was taken, reserved or written.
        """
        size, refill = self.buckets.get(action, (0.0, 0.0))
        keys = [
            self._keys.work(claim.kind, claim.name),
            self._keys.pending(claim.kind),
            self._keys.switches,
            self._keys.breaker(action),
            self._keys.bucket(action),
            self._keys.ledger,
            self._keys.ledger_entries,
            self._keys.journal,
            self._keys.generation_times,
        ]
        if instance_id:
            keys.append(self._keys.facts(instance_id))
        args: list[str | bytes | float] = [claim.name, claim.token, size, refill, int(urgent)]
        args += [milliseconds(busy_seconds), DAY_MS, journal]
        if draw is not None:
            wanted = draw.reservation
            args += [wanted.subnet_id, wanted.id, wanted.count, draw.free, milliseconds(draw.hold_seconds)]
        result, wait_ms, why = self._connection.run("acquire", keys, args)
        if result == b"paused":
            pause = decode_pause(self._keys, why)
            return Acquired(
                result=AcquireResult.PAUSED, wait_seconds=wait_ms / 1000, why=f"paused by {pause.who}: {pause.why}"
            )
        return Acquired(
            result=AcquireResult(text(result)),
            wait_seconds=wait_ms / 1000,
            why=prose(why),
            probe=why == b"probe",
        )

    def take_read(self, action: str) -> float:
        """Take a token for a read; answers the seconds to wait before asking again, 0 if it was taken."""
        wait_ms = self._connection.run("take_read", [self._keys.bucket(action)], self.buckets.get(action, (0.0, 0.0)))
        return int(wait_ms) / 1000

    def throttled(self, action: str) -> None:
        """Halve the shared rate of an action that EC2 throttled (at most once a second)."""
        self._connection.run("throttled", [self._keys.bucket(action)], [])

    def open_breaker(self, action: str, why: str, seconds: float) -> None:
        """Stop an action for all workers for a while; after it one caller at a time may probe."""
        key = self._keys.breaker(action)
        until = self._connection.now_ms() + milliseconds(seconds)
        with self._connection.translated():
            pipe = self._connection.client.pipeline(transaction=True)
            pipe.hdel(key, "probe")
            pipe.hset(key, mapping={"until": until, "why": why})
            pipe.pexpire(key, milliseconds(seconds) + DAY_MS)
            pipe.execute()

    def close_breaker(self, action: str) -> None:
        """Let all workers call the action again: a probe succeeded."""
        self._connection.send(("DEL", self._keys.breaker(action)))

    def pause(self, who: str, why: str) -> None:
        """Stop all mutations; everything else continues."""
        entry = encode(Pause(who=who, why=why, since=self._connection.now_ms() / 1000))
        self._connection.send(("HSET", self._keys.switches, "pause", entry))

    def resume(self) -> None:
        """End the pause."""
        self._connection.send(("HDEL", self._keys.switches, "pause"))

    def paused(self) -> Pause | None:
        """The pause that is in force, or None."""
        (entry,) = self._connection.send(("HGET", self._keys.switches, "pause"))
        return decode_pause(self._keys, entry) if entry else None


def decode_pause(keys: Keys, entry: bytes) -> Pause:
    """Decode the entry of a pause; one that can't be decoded is a pause all the same."""
    known = decoded(f"{keys.switches} pause", entry, _decode_pause)
    return known or Pause(
        who="unknown", why="the entry in Redis can't be decoded; `eni-tasks resume` deletes it", since=0.0
    )
