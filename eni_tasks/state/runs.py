"""What a run exchanges with Redis: begin, record, end, and storing new objects, each in one round trip.

Every method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import NodeName, Value
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import Outcome
from eni_tasks.model.work import Claim, Finished, WorkKind
from eni_tasks.state import commands
from eni_tasks.state.connection import PORTION_COUNT, Command, Connection, Script
from eni_tasks.state.decoding import text
from eni_tasks.state.nodes import NodeAnswer, Nodes
from eni_tasks.state.queue import WorkQueue, decode_claim, new_token

Items = Sequence[tuple[NodeName, Urgency]]


@dataclass
class NewObjects:
    """New objects, and what follows from them.

    `reads` are nodes whose instance is to be read, `deficits` nodes that lack addresses. `maintain` and
    `publish` are work to enqueue; it ends waits. With `any_version` objects are stored even if they are older than
    the stored ones.
    """

    objects: list[CiliumNode] = field(default_factory=list)
    reads: list[NodeName] = field(default_factory=list)
    maintain: list[tuple[NodeName, Urgency]] = field(default_factory=list)
    publish: list[tuple[NodeName, Urgency]] = field(default_factory=list)
    deficits: list[NodeName] = field(default_factory=list)
    any_version: bool = False


class RunEnd(Value, frozen=True):
    """How a run ends.

    `memory` is what it learned, if that changed; it is written only while the claim is live. `publish`
    enqueues publishing of the node, with this urgency. `in_deficit` says whether the node lacks addresses that
    it could have; None if that isn't known. `publish_failure` is why the object could not be written, "" if it could;
    None if the run did not try. `again_after_seconds` is as in `WorkQueue.finish`.
    """

    memory: Memory | None = None
    publish: Urgency | None = None
    in_deficit: bool | None = None
    publish_failure: str | None = None
    again_after_seconds: float | None = None


class RunEnded(Value, frozen=True):
    """What became of the work, and whether a message for publishing must be sent."""

    finished: Finished
    publish: bool = False


class Runs:
    """Combines the queue, the nodes and their facts.

    Args:
        connection: the way to Redis.
        queue: for the lengths of leases and waits.
        nodes: for decoding nodes' states.
    """

    def __init__(self, connection: Connection, queue: WorkQueue, nodes: Nodes) -> None:
        self._connection = connection
        self._keys = connection.keys
        self._queue = queue
        self._nodes = nodes

    def begin(self, kind: WorkKind, name: NodeName) -> tuple[Claim, NodeAnswer] | None:
        """Claim a node and read its state; None while another live claim holds it."""
        token = new_token()
        claimed, state = self._connection.send(
            commands.claim(self._keys, kind, name, token, lease_ms=self._queue.lease_ms),
            commands.read_node(self._keys, name),
        )
        claim = decode_claim(kind, name, token, claimed)
        return None if claim is None else (claim, self._nodes.decode_state(name, state))

    def record(self, claim: Claim, outcome: Outcome) -> bool:
        """Record what came of a step.

        Returns:
            False if a later claim wrote the facts already, or the journal is no longer this claim's to write;
            that part is unchanged then.
        """
        fenced: list[Script | Command] = []
        if outcome.journal is not None:
            fenced.append(commands.put_journal(self._keys, claim, outcome.journal))
        if outcome.instance_id:
            fenced.append(commands.record_facts(self._keys, claim, outcome))
        others: list[Script | Command] = []
        if outcome.reservation is not None:
            others.append(commands.settle_reservation(self._keys, outcome.reservation, outcome.taken))
        if outcome.event is not None:
            others.append(commands.append_event(self._keys, *outcome.event))
        return all(answer == 1 for answer in self._connection.send(*fenced, *others)[: len(fenced)])

    def end(self, claim: Claim, end: RunEnd) -> RunEnded:
        """End a run: enqueue what follows it, write what it learned, and end the claim.

        Nothing is written for a node that was removed meanwhile, or that another run holds.
        """
        sent: list[Script | Command] = []
        if end.publish is not None:
            sent += self._enqueue(WorkKind.PUBLISH, [(claim.node, end.publish)], stored_only=True)
        sent.append(
            commands.finish(
                self._keys,
                claim,
                again_after_seconds=end.again_after_seconds,
                overdue_ms=self._queue.overdue_ms,
                memory=end.memory,
                in_deficit=end.in_deficit,
                publish_failure=end.publish_failure,
            )
        )
        answers = self._connection.send(*sent)
        return RunEnded(finished=Finished(text(answers[-1])), publish=end.publish is not None and bool(answers[0]))

    def store(self, new: NewObjects) -> dict[WorkKind, list[NodeName]]:
        """Store objects, each only if it is newer than the stored one, with all that follows from them.

        What follows is written first: if the process dies in between, the object still differs for the next
        process that sees it.

        Returns:
            Per kind the nodes for which a message must be sent.
        """
        maintain = self._enqueue(WorkKind.MAINTAIN, new.maintain)
        publish = self._enqueue(WorkKind.PUBLISH, new.publish)
        notes = commands.note_nodes(self._keys, reads=new.reads, deficits=new.deficits)
        objects = commands.put_nodes(self._keys, new.objects, any_version=new.any_version)
        answers = self._connection.send(*maintain, *publish, *notes, *objects)
        return {
            WorkKind.MAINTAIN: _names(answers[: len(maintain)]),
            WorkKind.PUBLISH: _names(answers[len(maintain) : len(maintain) + len(publish)]),
        }

    def _enqueue(self, kind: WorkKind, items: Items, *, stored_only: bool = False) -> list[Script]:
        return [
            commands.enqueue(
                self._keys,
                kind,
                portion,
                overdue_ms=self._queue.overdue_ms,
                ends_wait=True,
                stored_only=stored_only,
            )
            for portion in _portions(items)
        ]


def _portions(items: Items) -> Iterator[Items]:
    for start in range(0, len(items), PORTION_COUNT):
        yield items[start : start + PORTION_COUNT]


def _names(answers: Sequence[Sequence[bytes]]) -> list[NodeName]:
    return [NodeName(text(name)) for answer in answers for name in answer]
