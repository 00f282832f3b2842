"""What people do to the running system: enqueue work, have things read again, pause mutations, unlock a node.

Each method returns a short report: fields for programs, and sentences (`explanation`) for people.
"""

from __future__ import annotations

from typing import Any

from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.model.state import NodeState
from eni_tasks.model.work import NODE_WORK, Pass, Pause, WorkKind
from eni_tasks.services import journal
from eni_tasks.services.sentences import sentence
from eni_tasks.services.work import Report, Work
from eni_tasks.state import State
from eni_tasks.state.nodes import JournalDeletion

TEXT_LONGEST = 300


class Admin:
    """The commands.

    Args:
        state: the shared state.
        work: enqueues.
        call_seconds: how long a mutation that was permitted may run.
    """

    def __init__(self, state: State, work: Work, *, call_seconds: float) -> None:
        self._state = state
        self._work = work
        self._call_seconds = call_seconds

    # -- enqueue ---------------------------------------------------------------------------------
    def enqueue(self, kind: WorkKind, name: NodeName) -> Report:
        """Have work on a node done now; this ends a back-off.

        Raises:
            NodeGone: no such node is known; nothing was done.
        """
        if self._state.nodes.object(name) is None:
            raise _unknown(name)
        if kind is WorkKind.MAINTAIN:
            # What earlier runs learned (a back-off, a refused interface) must not stop what a person asks for.
            self._state.nodes.delete_memory(name)
        sent = self._work.enqueue(kind, [(name, Urgency.EMPTY)], ends_wait=True)
        said = f"The {kind} work of {name} is enqueued."
        said += "" if sent else " It was enqueued or running already; that run will do it."
        return {"node": name, "kind": kind, "sent": sent, "explanation": [said]}

    def reread_all(self) -> Report:
        """Have everything read again from EC2."""
        self._work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
        return {"enqueued": "eni.refresh_inventory", "explanation": ["A read of all instances is enqueued."]}

    def reread(self, node_or_instance: str) -> Report:
        """Have one instance read from EC2 by a worker, soon and for certain.

        Args:
            node_or_instance: a node's name, or the id of its instance.

        Raises:
            NodeGone: no node of that name or instance is known; nothing was done.
        """
        name = self._node_of(node_or_instance)
        self._state.reads.request([name])
        self._work.enqueue_pass(Pass.INSTANCES)
        return {"node": name, "enqueued": "eni.refresh_instances", "explanation": [f"A read of {name} is enqueued."]}

    def collect_orphans(self) -> Report:
        """Have interfaces that were left behind deleted, by the usual rules."""
        self._work.collect_orphans()
        return {"enqueued": "eni.collect_orphans", "explanation": ["A pass of the orphan collector is enqueued."]}

    # -- pause and resume ------------------------------------------------------------------------
    def pause(self, who: str, why: str) -> Report:
        """Stop all mutations of EC2; reads, and writes of CiliumNodes, continue.

        Args:
            who: the person to ask.
            why: what others should know.

        Returns:
            A report; `replaced` is the pause that was in force already.

        Raises:
            InvalidInput: a text is missing or too long; nothing was done.
        """
        who, why = _text("who", who), _text("why", why)
        before = self._state.limiter.paused()
        self._state.limiter.pause(who, why)
        self._state.events.append("Pause", {"who": who, "why": why})
        said = [f"Mutations of EC2 are paused by {who}: {sentence(why)} `eni-tasks resume` lets them continue."]
        if before is not None:
            said.append(f"This replaces the pause by {before.who}: {sentence(before.why)}")
        return {"paused": True, "who": who, "why": why, "replaced": _plain(before), "explanation": said}

    def resume(self) -> Report:
        """Let mutations continue that a pause, or trouble of the whole account, stopped.

        A breaker that is closed here opens again at the next call if its trouble is not over.

        Returns:
            A report with the pause that was ended and the actions whose breakers were closed.
        """
        summary = self._state.summary.read(())
        actions = list(summary.breakers)
        for action in actions:
            self._state.limiter.close_breaker(action)
        said = [f"{action} may be tried again ({summary.breakers[action].why.rstrip('.')})." for action in actions]
        before = summary.pause
        if before is not None:
            self._state.limiter.resume()
            said.append(f"The pause by {before.who} ({before.why.rstrip('. ')}) is over.")
        if said:
            paused_by = before.who if before else ""
            self._state.events.append("Resume", {"actions": ", ".join(actions), "paused_by": paused_by})
            short = self._state.nodes.in_deficit()
            self._work.enqueue(WorkKind.MAINTAIN, [(name, Urgency.DEFICIT) for name in short], ends_wait=True)
            self._work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
            said.append(f"Nodes in deficit that are tried again now: {len(short)}. EC2 is read again.")
        else:
            said.append("Nothing was paused or stopped.")
        return {"paused": False, "ended": _plain(before), "closed": actions, "explanation": said}

    # -- unlock ----------------------------------------------------------------------------------
    def unlock(self, name: NodeName) -> Report:
        """End the claims on a node, as if their leases had run out, and have it worked on now.

        Harmless if the holder lives: it is refused its next mutation, and the journal says where the next worker
        continues. A mutation that may still be running is waited for.

        Args:
            name: the node.

        Returns:
            A report: the claims that were ended, and what its journal says.

        Raises:
            NodeGone: no such node is known, and nothing is left of one; nothing was done.
        """
        if self._state.nodes.object(name) is None:
            return self._unlock_removed(name)
        lefts = {kind: self._state.queue.end_claim(kind, name) for kind in NODE_WORK}
        ended = {kind: left for kind, left in lefts.items() if left is not None}
        # Read after no worker can begin anything any more: what is running by now is all that there is.
        entry = self._state.nodes.journal(name)
        said: list[str] = []
        for kind, left in ended.items():
            lease = f"its lease had {left:.0f} s left" if left > 0 else f"its lease ran out {-left:.0f} s ago"
            said.append(f"The {kind} claim on {name} is ended ({lease}).")
            wait_seconds = self._busy_seconds(name, entry, left) if kind is WorkKind.MAINTAIN else 0.0
            if wait_seconds:
                said.append(f"A mutation may still be running: the next run begins in {wait_seconds:.0f} s.")
            self._run_again(kind, name, wait_seconds)
        if ended:
            self._state.events.append("Unlock", {"node": name, "kinds": ", ".join(ended)})
        else:
            said.append(f"No worker holds {name}. If it waits, `eni-tasks maintain {name}` ends the wait.")
        readable = None if entry is None else journal.readable(entry)
        if entry is not None:
            said.append(journal.explain(entry))
        if readable is False:
            said.append(f"Check whether that interface exists, then: eni-tasks unlock {name} --delete-journal")
        return {"node": name, "ended": dict(ended), "journal": readable, "explanation": said}

    def unlock_pass(self, which: Pass) -> Report:
        """End the claim on a pass, as if its lease had run out, and have the pass made now by another worker.

        Harmless if the holder lives: what it reads is compared with the facts as ever, and it is refused its next
        mutation.

        Args:
            which: the pass.
        """
        left = self._state.queue.end_claim(WorkKind.FLEET, which)
        if left is None:
            said = f"No worker has claimed the pass {which}."
        else:
            lease = f"its lease had {left:.0f} s left" if left > 0 else f"its lease ran out {-left:.0f} s ago"
            said = f"The claim on the pass {which} is ended ({lease}), and the pass is enqueued."
            self._state.events.append("Unlock", {"pass": which})
            self._work.enqueue_pass(which, ends_wait=True)
        return {"pass": which, "ended": left, "explanation": [said]}

    def _unlock_removed(self, name: NodeName) -> Report:
        """Delete what is left of a node that was removed."""
        if name not in self._state.nodes.leftovers():
            raise _unknown(name)
        self._state.queue.remove(name)
        self._state.nodes.remove_leftovers(name)
        self._state.events.append("Unlock", {"node": name, "kinds": "leftovers"})
        said = f"No CiliumNode {name} is known; what was left of it in Redis is deleted."
        return {"node": name, "ended": {}, "journal": None, "explanation": [said]}

    def delete_journal(self, name: NodeName) -> Report:
        """Delete a journal entry that can't be decoded; one that can is a worker's to end.

        Args:
            name: the node.

        Returns:
            A report that holds the entry as it was.

        Raises:
            NodeGone: no such node is known.
            InvalidInput: there is no entry, it can be decoded, or it has just changed; nothing was done.
        """
        if self._state.nodes.object(name) is None:
            raise _unknown(name)
        entry = self._state.nodes.journal(name)
        if entry is None:
            raise InvalidInput(f"node {name} has no journal entry: there is nothing to delete")
        if journal.readable(entry):
            raise InvalidInput(f"the journal entry of {name} is intact: `eni-tasks maintain {name}` continues with it")
        answer = self._state.nodes.delete_journal(name, entry)
        if answer is not JournalDeletion.DONE:
            raise InvalidInput(f"the journal entry of {name} was left alone ({answer}): a worker uses it; look again")
        text = entry.decode(errors="replace")
        self._state.events.append("DeleteJournal", {"node": name, "entry": text})
        self._run_again(WorkKind.MAINTAIN, name, 0.0)
        said = [
            f"The journal entry of {name} is deleted. It said: {text}",
            "If it names an interface that is not attached, that interface is an orphan now and is collected as such.",
        ]
        return {"node": name, "deleted": text, "explanation": said}

    def _busy_seconds(self, name: NodeName, entry: bytes | None, left_seconds: float) -> float:
        """How long a mutation that was permitted, and not answered yet, may still run."""
        ((_, state),) = self._state.nodes.read_many([name])
        facts = state.facts if isinstance(state, NodeState) else None
        pending = 0.0
        if facts is not None and facts.mutation_pending:
            pending = facts.mutated_at - self._state.now()
        # A create touches no facts; a lease outlives the call that was permitted under it.
        creating = min(self._call_seconds, left_seconds) if entry is not None else 0.0
        return max(0.0, pending, creating)

    def _run_again(self, kind: WorkKind, name: NodeName, delay_seconds: float) -> None:
        if delay_seconds:
            items = [(name, Urgency.DEFICIT)]
            self._state.queue.enqueue(kind, items, delay_seconds=delay_seconds, ends_wait=True)
        else:
            self._work.enqueue(kind, [(name, Urgency.EMPTY)], ends_wait=True)

    def _node_of(self, node_or_instance: str) -> NodeName:
        if self._state.nodes.object(NodeName(node_or_instance)) is not None:
            return NodeName(node_or_instance)
        for obj in self._state.nodes.all_objects():
            try:
                node = parse_node(obj)
            except InvalidInput:
                continue
            if node.instance_id == node_or_instance:
                return node.name
        raise NodeGone(f"{node_or_instance}: no CiliumNode of that name or instance is known; is the watcher running?")


def _unknown(name: NodeName) -> NodeGone:
    return NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")


def _plain(pause: Pause | None) -> dict[str, Any] | None:
    """As JSON has it: what a task returns is read by people and by other programs."""
    return None if pause is None else {"who": pause.who, "why": pause.why, "since": pause.since}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is empty: give a text that others understand")
    if len(value) > TEXT_LONGEST:
        raise InvalidInput(f"{name} is {len(value)} characters long; at most {TEXT_LONGEST} are kept")
    return value.strip()
