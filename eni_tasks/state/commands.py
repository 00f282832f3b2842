"""The scripts that travel together: what `queue`, `nodes` and `runs` send alone or in one round trip.

One function per script of `scripts/`: keys and arguments go in by name, the script to send comes out. The
form of the answer stands at the head of the Lua file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from eni_tasks.domain.cilium_node import creation_seconds, machine_of, shows_addresses
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import EventFields, Outcome, Reservation
from eni_tasks.model.work import Claim, Pass, WorkKind
from eni_tasks.state.connection import DAY_MS, PORTION_COUNT, Command, Script, milliseconds
from eni_tasks.state.keys import Keys

EVENTS_KEPT_COUNT = 10_000
FACTS_FIELDS = (
    "interfaces",
    "described_at",
    "mutated_at",
    "version",
    "unconfirmed_since",
    "mutation_pending",
    "lacking",
    "released",
    "problem",
)

Item = tuple[NodeName | Pass, Urgency]

encode = msgspec.json.encode


def enqueue(  # noqa: PLR0913 - the arguments of the script
    keys: Keys,
    kind: WorkKind,
    items: Sequence[Item],
    *,
    overdue_ms: int,
    delay_ms: int = 0,
    ends_wait: bool = False,
    stored_only: bool = False,
) -> Script:
    """Enqueue at most PORTION_COUNT pieces of work; with `stored_only` none for nodes that are not stored."""
    pairs = [word for name, urgency in items for word in (name, int(urgency))]
    touched = [keys.pending(kind), keys.nodes, *(keys.work(kind, name) for name, _ in items)]
    return Script("enqueue", touched, [overdue_ms, delay_ms, int(ends_wait), int(stored_only), *pairs])


def claim(keys: Keys, kind: WorkKind, name: NodeName | Pass, token: str, *, lease_ms: int) -> Script:
    """Claim a piece of work under a token of the caller's."""
    return Script(
        "claim",
        [keys.work(kind, name), keys.pending(kind), keys.fence, keys.generation_times],
        [name, token, lease_ms],
    )


def finish(  # noqa: PLR0913 - the arguments of the script
    keys: Keys,
    held: Claim,
    *,
    again_after_seconds: float | None,
    overdue_ms: int,
    memory: Memory | None = None,
    in_deficit: bool | None = None,
    publish_failure: str | None = None,
) -> Script:
    """End a claim; arguments as in `WorkQueue.finish` and `RunEnd`."""
    again_ms = -1 if again_after_seconds is None else max(0, milliseconds(again_after_seconds))
    touched = [keys.work(held.kind, held.name), keys.pending(held.kind)]
    args: list[str | bytes | int] = [held.name, held.token, again_ms, overdue_ms]
    if held.kind is not WorkKind.FLEET:
        touched += [keys.nodes, keys.memory, keys.deficits, keys.publish_failures]
        args += [b"" if memory is None else encode(memory), "" if in_deficit is None else int(in_deficit)]
        args += [] if publish_failure is None else [publish_failure]
    return Script("finish", touched, args)


def read_node(keys: Keys, name: NodeName) -> Script:
    """Read everything that a decision about one node looks at."""
    touched = [keys.nodes, keys.versions, keys.memory, keys.journal, keys.infrastructure, keys.ledger]
    touched += [keys.cooldowns, keys.limits, keys.generation, keys.generation_times, keys.switches]
    touched += [keys.publish_failures, keys.pending_pods, keys.no_prefix]
    return Script("read_node", touched, [name, keys.facts(""), keys.claimants(""), *FACTS_FIELDS])


def put_nodes(keys: Keys, objects: Iterable[CiliumNode], *, any_version: bool) -> Iterable[Script]:
    """Store objects with the instance and type that they name, each only if it is newer than the stored one.

    With `any_version` older ones are stored, too.
    """
    args: list[list[str | bytes]] = []
    for obj in objects:
        metadata = obj.metadata
        version, created = metadata.resource_version, creation_seconds(obj) * 1000
        shown = "1" if shows_addresses(obj) else "0"
        args.append([metadata.name, version, metadata.uid, *machine_of(obj), str(created), shown, encode(obj)])
    for start in range(0, len(args), PORTION_COUNT):
        portion = [word for each in args[start : start + PORTION_COUNT] for word in each]
        yield Script("put_nodes", [keys.nodes, keys.versions], [keys.claimants(""), int(any_version), *portion])


def note_nodes(keys: Keys, *, reads: Iterable[NodeName], deficits: Iterable[NodeName]) -> Iterable[Script]:
    """Request reads of nodes' instances, and note which nodes lack addresses."""
    notes = (("read", reads), ("deficit", deficits))
    words = [word for note, names in notes for name in names for word in (note, name)]
    step = 2 * PORTION_COUNT
    for start in range(0, len(words), step):
        yield Script("note_nodes", [keys.reads, keys.deficits], words[start : start + step])


def put_journal(keys: Keys, held: Claim, entry: bytes) -> Script:
    """Write the step of an interface creation (b"" deletes the entry), if the claim is live."""
    return Script("put_journal", [keys.work(held.kind, held.name), keys.journal], [held.name, held.token, entry])


def record_facts(keys: Keys, held: Claim, outcome: Outcome) -> Script:
    """Record what a mutation did to an instance."""
    interfaces = b"" if outcome.interfaces is None else encode(outcome.interfaces)
    released = b"" if outcome.released is None else encode(outcome.released)
    args = [held.fence, interfaces, int(outcome.unconfirmed), DAY_MS, released]
    return Script("record_facts", [keys.facts(outcome.instance_id)], args)


def settle_reservation(keys: Keys, reservation: Reservation, taken_count: int) -> Script:
    """Replace a reservation by what was really taken (0: nothing)."""
    args = [reservation.subnet_id, reservation.id, reservation.count, taken_count]
    return Script("settle_reservation", [keys.ledger, keys.ledger_entries], args)


def append_event(keys: Keys, what: str, fields: EventFields) -> Command:
    """Append one entry to the capped stream of events."""
    words = [word for pair in {"what": what, **fields}.items() for word in pair]
    return ("XADD", keys.events, "MAXLEN", "~", EVENTS_KEPT_COUNT, "*", *words)
