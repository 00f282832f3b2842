"""Which instances are to be read from EC2, and whether reads succeed.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.state.connection import DAY_MS, Connection, milliseconds
from eni_tasks.state.decoding import text

FAILURE_LONGEST = 300  # EC2 appends kilobytes of encoded text to a denial


class ReadRequests:
    """Requested reads, by node.

    Args:
        connection: the way to Redis.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._keys = connection.keys

    def request(self, names: Iterable[NodeName], *, delay_seconds: float = 0.0) -> None:
        """Request a read of nodes' instances, not before `delay_seconds` from now."""
        wanted = list(names)
        if wanted:
            due = self._connection.now_ms() + milliseconds(delay_seconds)
            self._connection.send(("ZADD", self._keys.reads, *(word for name in wanted for word in (due, name))))

    def retry(
        self, nodes: Sequence[tuple[NodeName, InstanceId]], *, first_seconds: float, longest_seconds: float
    ) -> None:
        """Request reads again that could not be accepted: after `first_seconds`, then twice that, and so on.

        One that would come later than `longest_seconds` is left to the periodic read.
        """
        if nodes:
            keys = [self._keys.reads, *(self._keys.facts(instance_id) for _, instance_id in nodes)]
            head = [milliseconds(first_seconds), milliseconds(longest_seconds), DAY_MS]
            self._connection.run("retry_reads", keys, [*head, *(name for name, _ in nodes)])

    def take(self, limit: int, *, lease_seconds: float) -> dict[NodeName, str]:
        """Take nodes whose read is due, for at most `lease_seconds`; each with a ticket for `complete`."""
        answer = self._connection.run("take_reads", [self._keys.reads], [limit, milliseconds(lease_seconds)])
        words = [text(word) for word in answer]
        return {NodeName(name): ticket for name, ticket in zip(words[::2], words[1::2], strict=True)}

    def complete(self, taken: Mapping[NodeName, str]) -> None:
        """Delete requests that were taken; one that was requested again meanwhile stays."""
        if taken:
            words = [word for pair in taken.items() for word in pair]
            self._connection.run("complete_reads", [self._keys.reads], words)

    def due_count(self) -> int:
        """How many requested reads are due."""
        now_ms = self._connection.now_ms()
        return int(self._connection.send(("ZCOUNT", self._keys.reads, "-inf", now_ms))[0])

    def note_inventory(self, started_at: float) -> None:
        """Store when the last complete read of all instances began, in Redis seconds."""
        self._connection.send(("HSET", self._keys.switches, "read_at", milliseconds(started_at)))

    def note_failure(self, why: str) -> None:
        """Store why the last pass failed, for people."""
        self._connection.send(("HSET", self._keys.switches, "read_failure", why[:FAILURE_LONGEST]))

    def note_success(self) -> None:
        """Delete the reason of an earlier failure."""
        self._connection.send(("HDEL", self._keys.switches, "read_failure"))
