"""Taking a node from a dead or stuck worker, because a person says so; and its journal, in words.

Reports are those of `steering`.
"""

from __future__ import annotations

from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.ports.repair import Repairs, Struck
from eni_tasks.ports.state import Store, World
from eni_tasks.ports.work import Work, WorkKind
from eni_tasks.services.dispatch import Dispatch
from eni_tasks.services.saga import decode
from eni_tasks.services.steering import Report


class Unlocking:
    """Ends claims and strikes out journal entries.

    Args:
        store: the node's world, and events.
        work: marks that wait.
        repairs: ending claims, striking out journal entries.
        dispatch: marks with their messages.
        call_seconds: how long a mutation that was let through may go on.
    """

    def __init__(self, store: Store, work: Work, repairs: Repairs, dispatch: Dispatch, *, call_seconds: float) -> None:
        self._store = store
        self._work = work
        self._repairs = repairs
        self._dispatch = dispatch
        self._call_seconds = call_seconds

    def unlock(self, name: NodeName) -> Report:
        """End the claims on a node, as if their leases had run out, and have it worked on now.

        Harmless if the holder lives: it is refused its next mutation, and the journal tells the
        next worker where it was. A mutation that may still be under way is waited for.

        Args:
            name: the node.

        Returns:
            A report: the claims that were ended, and what its journal says.

        Raises:
            NodeGone: no such node is known; nothing was done.
        """
        self._world(name)
        lefts = {kind: self._repairs.end_claim(kind, name) for kind in (WorkKind.MAINTAIN, WorkKind.PUBLISH)}
        ended = {kind: left for kind, left in lefts.items() if left is not None}
        # Read when nobody can begin anything any more: what is under way by now is all that there is.
        world = self._world(name)
        said: list[str] = []
        for kind, left in ended.items():
            lease = f"its lease had {left:.0f} s left" if left > 0 else f"its lease ran out {-left:.0f} s ago"
            said.append(f"The {kind} claim on {name} is ended ({lease}).")
            wait_seconds = self._busy_seconds(world, left) if kind is WorkKind.MAINTAIN else 0.0
            if wait_seconds:
                said.append(f"A mutation may still be under way: the next run begins in {wait_seconds:.0f} s.")
            self._again(kind, name, wait_seconds)
        if ended:
            self._store.event("Unlock", {"node": name, "kinds": ", ".join(ended)})
        else:
            said.append(f"Nobody holds {name}. If it waits, `eni-tasks maintain {name}` ends the wait.")
        said += self._journal_said(world, name)
        return {"node": name, "ended": dict(ended), "journal": _readable(world), "explanation": said}

    def strike_out(self, name: NodeName) -> Report:
        """Strike out a journal entry that can't be read; one that can is a worker's to end.

        Args:
            name: the node.

        Returns:
            A report that holds the entry as it was.

        Raises:
            NodeGone: no such node is known.
            InvalidInput: there is no entry, it can be read, or somebody has just changed it; nothing was done.
        """
        world = self._world(name)
        entry = world.journal
        if entry is None:
            raise InvalidInput(f"node {name} has no journal entry: there is nothing to strike out")
        if _readable(world):
            raise InvalidInput(f"the journal entry of {name} can be read: `eni-tasks maintain {name}` goes on with it")
        struck = self._repairs.strike_out(name, entry)
        if struck is not Struck.DONE:
            raise InvalidInput(f"the journal entry of {name} was left alone ({struck}): a worker is at it; look again")
        text = entry.decode(errors="replace")
        self._store.event("StrikeOut", {"node": name, "entry": text})
        self._again(WorkKind.MAINTAIN, name, 0.0)
        said = [
            f"The journal entry of {name} is struck out. It said: {text}",
            "If it speaks of an interface that is not attached, that one is an orphan now and is collected as such.",
        ]
        return {"node": name, "struck_out": text, "explanation": said}

    def _world(self, name: NodeName) -> World:
        world = self._store.gather(name)
        if world.obj is None:
            raise NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
        return world

    def _busy_seconds(self, world: World, left_seconds: float) -> float:
        """How long a mutation that was let through, and not answered yet, may still be under way."""
        facts = world.facts
        in_air = facts.mutated_at - world.now if facts is not None and facts.in_air else 0.0
        # A create touches no facts; a lease outlives the call that was let through under it.
        making = min(self._call_seconds, left_seconds) if world.journal is not None else 0.0
        return max(0.0, in_air, making)

    def _again(self, kind: WorkKind, name: NodeName, delay_seconds: float) -> None:
        if delay_seconds:
            self._work.mark(kind, [(name, Urgency.DEFICIT)], delay_seconds=delay_seconds, ends_wait=True)
        else:
            self._dispatch.mark(kind, [(name, Urgency.EMPTY)], ends_wait=True)

    def _journal_said(self, world: World, name: NodeName) -> list[str]:
        if world.journal is None:
            return []
        said = [journal_in_words(world.journal)]
        if not _readable(world):
            said.append(f"Look whether that interface exists, then: eni-tasks unlock {name} --strike-out")
        return said


def journal_in_words(entry: bytes) -> str:
    """Say what a journal entry says, also one that no worker can read."""
    try:
        saga = decode(entry)
    except InvalidInput:
        return f"The journal entry can't be read, so no worker goes on: {entry.decode(errors='replace')}"
    what = saga.interface.id if saga.interface is not None else f"an interface in {saga.request.subnet_id}"
    why = f" ({saga.why})" if saga.why else ""
    return f"The journal is at step {saga.step} of making {what}{why}; the next run goes on from there."


def _readable(world: World) -> bool | None:
    """Whether a worker can go on with the journal; None if there is no entry."""
    if world.journal is None:
        return None
    try:
        decode(world.journal)
    except InvalidInput:
        return False
    return True
