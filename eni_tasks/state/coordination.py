"""What the processes agree on: the state generation, who starts a periodic pass, and whether the system keeps up.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

import uuid

from redis.exceptions import NoPermissionError

from eni_tasks.model.network import NodeName, Value
from eni_tasks.state.connection import Connection, milliseconds, time_ms
from eni_tasks.state.decoding import scored, seconds, text


class Progress(Value, frozen=True):
    """How far behind the system is, in Redis seconds.

    `deficit_node` is the node that has lacked addresses for longest which it could have, since
    `deficit_since`. `read_at` is when the last good read of everything began. None if there is none.
    """

    now: float
    deficit_node: NodeName | None
    deficit_since: float | None
    read_at: float | None

    @property
    def deficit_seconds(self) -> float:
        """For how long `deficit_node` has lacked addresses; 0 if there is none."""
        return self.now - (self.deficit_since or self.now)

    def unread_seconds(self, began_at: float) -> float:
        """Since the last good read of everything began; if there was none, since `began_at`."""
        return self.now - (self.read_at or began_at)


class Generation(Value, frozen=True):
    """A state generation as it was seen at a time of Redis: `beat` counts how often it was confirmed."""

    id: str
    beat: int
    at_ms: int


class Coordination:
    """Reads and writes of what all processes share.

    Args:
        connection: the way to Redis.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._keys = connection.keys

    def begin_generation(self, known: Generation | None = None, *, quiet_seconds: float = 0.0) -> Generation:
        """Confirm the state generation; begin another if none has begun, or if the state went back in time.

        It went back if the server was restarted or failed over since it was last confirmed (its last writes may be
        lost), or if it is older than what the caller remembers. Facts that were read before count as unknown
        then, and reads that begin within `quiet_seconds` are not accepted.

        Args:
            known: what the caller was answered last, if anything.
            quiet_seconds: for how long a mutation of the earlier generation may run and not be seen by reads.
        """
        keys = [self._keys.generation, self._keys.generation_times, self._keys.orphans, self._keys.removed]
        args: list[str | int] = [uuid.uuid4().hex, milliseconds(quiet_seconds), self._run_id()]
        args += [known.id, known.beat, known.at_ms] if known else ["", 0, 0]
        present, beat, at_ms = self._connection.run("begin_generation", keys, args)
        return Generation(id=text(present), beat=beat, at_ms=at_ms)

    def _run_id(self) -> str:
        """The id of the server's present run; "" if it does not say."""
        with self._connection.translated():
            try:
                return str(self._connection.client.info("server").get("run_id", ""))
            except NoPermissionError:
                return ""

    def begin_quiet_period(self, quiet_seconds: float) -> None:
        """Accept no read that begins in the first `quiet_seconds` of this generation.

        Called when nodes were served before it: mutations of which this Redis has no record may be running.
        """
        keys = [self._keys.generation_times]
        self._connection.run("begin_quiet_period", keys, [milliseconds(quiet_seconds)])

    def note_restore(self) -> None:
        """Take note that the API server's objects went back in time, before any of them is stored."""
        self._connection.send(("HINCRBY", self._keys.generation_times, "restores", 1))

    def take_slot(self, name: str, seconds: float) -> bool:
        """True for exactly one caller per `seconds`: the one that starts a periodic pass."""
        key, period_ms = self._keys.slot(name), milliseconds(seconds)
        taken, left_ms = self._connection.send(("SET", key, 1, "NX", "PX", period_ms), ("PTTL", key))
        if not 0 <= left_ms <= period_ms:
            # Taken for good, or for the period of an earlier setting.
            self._connection.send(("PEXPIRE", key, period_ms))
        return bool(taken)

    def progress(self) -> Progress:
        """How far behind the system is."""
        flat, read_at, time = self._connection.send(
            ("ZRANGE", self._keys.deficits, 0, 0, "WITHSCORES"), ("HGET", self._keys.switches, "read_at"), ("TIME",)
        )
        oldest = scored(flat)
        return Progress(
            now=time_ms(time) / 1000,
            deficit_node=NodeName(text(oldest[0][0])) if oldest else None,
            deficit_since=oldest[0][1] / 1000 if oldest else None,
            read_at=seconds(f"{self._keys.switches} read_at", read_at) or None,
        )
