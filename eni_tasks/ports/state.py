"""Shared state in Redis, as the use cases see it: work in flight and a cache of facts.

All times are Redis' own, in seconds since 1970 (`Store.now`); no caller's clock goes in. Every
method raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from eni_tasks.model.network import Infrastructure, InstanceId, Interface, Limits, NodeName, SubnetId, Value
from eni_tasks.model.node import Memory
from eni_tasks.ports.work import Claim, Reservation


class Facts(Value, frozen=True):
    """What is known of one instance's interfaces.

    `mutated_at` is the time by which the last mutation has certainly ended; `version` changes with
    every write. `doubted_at` is set while a read missed something that an earlier one had; `in_air`
    while a mutation was let through whose outcome isn't recorded. Either makes the facts unknown.
    """

    instance_id: InstanceId
    interfaces: tuple[Interface, ...]
    described_at: float
    mutated_at: float = 0.0
    version: int = 0
    doubted_at: float = 0.0
    in_air: bool = False


class World(Value, frozen=True):
    """Everything about one node at one moment; `now` is Redis' time.

    `facts` and `limits` are those of the instance and the type that the object names, None where
    unknown; `limits_asked` tells a type that EC2 did not know from one that nobody has asked about.
    """

    obj: dict[str, Any] | None
    memory: Memory
    journal: bytes | None
    infrastructure: Infrastructure | None
    reserved: dict[str, int]
    benched: frozenset[str]
    now: float
    facts: Facts | None
    limits: Limits | None
    limits_asked: bool


class Outcome(Value, frozen=True):
    """What a step leaves behind; a part that is absent stays as it was.

    Facts of `instance_id` (if given): `interfaces` as EC2's answer has left them, or None if it refused;
    with `doubt` it contradicted our view, and the facts are unknown until the next read. `journal`:
    the saga's step, b"" strikes it out. `reservation` (as `spend` made it): `taken` addresses of it
    were really taken.
    """

    instance_id: InstanceId = InstanceId("")
    interfaces: tuple[Interface, ...] | None = None
    doubt: bool = False
    journal: bytes | None = None
    reservation: Reservation | None = None
    taken: int = 0
    event: tuple[str, Mapping[str, str | int | float]] | None = None


class Shown(Value, frozen=True):
    """What a describe showed of one instance, compared with its facts at `version` (0: there were none).

    `served` says that the object shows addresses: the node was served before, perhaps a moment ago by
    somebody of whom this Redis knows nothing.
    """

    instance_id: InstanceId
    interfaces: tuple[Interface, ...]
    version: int
    doubt: bool = False
    served: bool = False


class Progress(Value, frozen=True):
    """Whether the system keeps up, in Redis seconds.

    The node that has lacked addresses for longest which it could have, and since when; when the last good
    read of everything began. None if there is none.
    """

    now: float
    needy: NodeName | None
    needy_since: float | None
    read_at: float | None


class Event(Value, frozen=True):
    """One line of the stream of events; the id begins with Redis' time in milliseconds."""

    id: str
    what: str
    fields: dict[str, str]


class Store(Protocol):
    """Nodes, facts, infrastructure, limits, ledger, journal and memory."""

    def now(self) -> float:
        """Redis' time in seconds."""
        ...

    def gather(self, name: NodeName) -> World:
        """Read one node's world in one round trip."""
        ...

    def gather_all(self, names: Sequence[NodeName]) -> Iterable[World]:
        """Read many nodes' worlds, in portions, in the order of `names`."""
        ...

    # -- nodes ---------------------------------------------------------------------------------
    def before(self, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Literal[False] | None]:
        """Compare trimmed objects with the stored ones.

        Returns:
            Per object: False if its resourceVersion is not newer than the stored one's, else the object
            that is stored (None if there is none).
        """
        ...

    def node(self, name: NodeName) -> dict[str, Any] | None:
        """The stored object, or None."""
        ...

    def objects(self, names: Collection[NodeName]) -> list[dict[str, Any]]:
        """The stored objects of some nodes; those that aren't stored are missing."""
        ...

    def names(self) -> list[NodeName]:
        """The names of all stored nodes."""
        ...

    def nodes(self) -> Iterable[dict[str, Any]]:
        """All stored objects, read in portions."""
        ...

    def drop_node(self, name: NodeName, *, uid: str = "", resource_version: str = "") -> bool:
        """Forget a node, its memory and journal, if it is still that uid (or not newer than that version)."""
        ...

    # -- facts ---------------------------------------------------------------------------------
    def facts(self, instance_ids: Sequence[InstanceId]) -> dict[InstanceId, Facts]:
        """Facts of instances; one that was never read well is missing."""
        ...

    def record(self, claim: Claim, outcome: Outcome) -> bool:
        """Write down what came of a step, in one round trip.

        Returns:
            False if a later claim wrote the facts already, or the journal is no longer this claim's to
            write; that part is as it was then.
        """
        ...

    def merge(self, shown: Sequence[Shown], *, started_at: float) -> list[bool]:
        """Enter what a describe showed of several instances.

        Refused (False) if the read started before the last mutation ended plus the settle time, if
        it started before the last accepted read, or if the facts are no longer at the version that they
        were compared with. With `doubt` the interfaces stay as they are and only `doubted_at` is set.

        Args:
            shown: per instance what the describe showed.
            started_at: when it began, Redis seconds.
        """
        ...

    def want_reads(self, names: Iterable[NodeName], *, delay_seconds: float = 0.0) -> None:
        """Note nodes whose instance is to be read (again)."""
        ...

    def retry_reads(
        self, nodes: Sequence[tuple[NodeName, InstanceId]], *, first_seconds: float, most_seconds: float
    ) -> None:
        """Note reads that could not be entered: again after `first_seconds`, then twice that, and so on.

        One that would come later than `most_seconds` is not noted: it is the periodic read's.
        """
        ...

    def take_reads(self, limit: int, *, lease_seconds: float) -> dict[NodeName, str]:
        """Take nodes whose read is due, for at most `lease_seconds`; each with a ticket for `done_reads`."""
        ...

    def done_reads(self, taken: dict[NodeName, str]) -> None:
        """Strike out reads that were taken; one wanted again meanwhile stays."""
        ...

    def forget(self, name: NodeName) -> None:
        """Strike out what a run that was under way may have noted of a node that is gone; its claim ended before."""
        ...

    def due_reads(self) -> int:
        """How many nodes wait for a read that is due."""
        ...

    def drop_facts(self, instance_id: InstanceId) -> None:
        """Forget an instance."""
        ...

    def note_inventory(self, started_at: float) -> None:
        """Remember when the last complete read of everything began."""
        ...

    def note_reads(self, *, failed: bool) -> int:
        """Count flights that failed since the last good one; returns how many."""
        ...

    def needy(self) -> list[NodeName]:
        """Nodes that lack addresses which they could have, the longest first."""
        ...

    def progress(self) -> Progress:
        """How far behind the system is."""
        ...

    # -- what nodes share --------------------------------------------------------------------
    def infrastructure(self) -> Infrastructure | None:
        """What was last described, or None before the first complete read."""
        ...

    def put_infrastructure(self, infrastructure: Infrastructure) -> None:
        """Replace it, if described later than the stored one, and forget what the ledger held until then."""
        ...

    def limits(self, instance_types: Iterable[str]) -> dict[str, Limits | None]:
        """Known limits; None for a type that EC2 did not know lately; missing when never asked."""
        ...

    def put_limits(self, limits: Mapping[str, Limits | None], *, negative_ttl_seconds: float) -> None:
        """Remember limits; a None is forgotten after `negative_ttl_seconds`."""
        ...

    def bench(self, subnet_id: SubnetId, seconds: float) -> None:
        """Let nobody choose the subnet for a while: it said that it is full."""
        ...

    # -- per node ------------------------------------------------------------------------------
    def journals(self) -> dict[NodeName, bytes]:
        """All sagas in flight."""
        ...

    def event(self, what: str, fields: Mapping[str, str | int | float]) -> None:
        """Append one line to the capped stream of events."""
        ...

    def events(self, *, after: str, limit: int) -> list[Event]:
        """Read the next events after an id ("0": from the oldest that is kept)."""
        ...

    # -- coordination ------------------------------------------------------------------------
    def begin_epoch(self, known: str | None = None, *, quiet_seconds: float = 0.0) -> str:
        """Set the mark if there is none; returns the one that stands.

        Args:
            known: the mark that the caller saw before, if any. If another stands, Redis was emptied since,
                and reads that begin within `quiet_seconds` are not believed.
            quiet_seconds: for how long a mutation of before may go on, and not be seen by reads.
        """
        ...

    def had_predecessors(self, quiet_seconds: float) -> None:
        """Say that nodes were served before this epoch: reads that begin in its first `quiet_seconds` are not believed.

        Calls of before may go on for so long, and nothing here tells of them.
        """
        ...

    def take_slot(self, name: str, seconds: float) -> bool:
        """True for exactly one caller per `seconds`: whoever may start what is due."""
        ...
