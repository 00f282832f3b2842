"""What a person does to the running system as a whole: stop all mutations, let them go on, have things read again.

Each answers a short report: fields for programs, and sentences (`explanation`) for people. What is done
to the work of one node is in `unlocking`.
"""

from __future__ import annotations

from typing import Any

from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.errors import InvalidInput, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.ports.lookout import Lookout
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import Budgets, Pause, WorkKind
from eni_tasks.services.dispatch import Dispatch

TEXT_LONGEST = 300

Report = dict[str, Any]


class Steering:
    """The levers.

    Args:
        store: nodes and events.
        budgets: pause and breakers.
        lookout: what is stopped.
        dispatch: asking for reads.
    """

    def __init__(self, store: Store, budgets: Budgets, lookout: Lookout, dispatch: Dispatch) -> None:
        self._store = store
        self._budgets = budgets
        self._lookout = lookout
        self._dispatch = dispatch

    def pause(self, who: str, why: str) -> Report:
        """Stop all mutations of EC2; reads, and writes of CiliumNodes, go on.

        Args:
            who: the person to ask.
            why: what others should know.

        Returns:
            A report; `replaced` is the pause that was in force already.

        Raises:
            InvalidInput: a text is missing or too long; nothing was done.
        """
        who, why = _text("who", who), _text("why", why)
        before = self._budgets.paused()
        self._budgets.pause(who, why)
        self._store.event("Pause", {"who": who, "why": why})
        said = [f"Mutations of EC2 are paused by {who}: {why}. `eni-tasks resume` lets them go on."]
        if before is not None:
            said.append(f"This replaces the pause by {before.who}: {before.why}.")
        return {"paused": True, "who": who, "why": why, "replaced": _plain(before), "explanation": said}

    def resume(self) -> Report:
        """Let mutations go on that a pause, or trouble of the whole account, stopped.

        A breaker that is closed here opens again at the next call if its trouble is not over. The one
        that waits for a good read of EC2 is left: nothing may be changed on facts that are not known.

        Returns:
            A report with the pause that was ended and the actions whose breakers were closed.
        """
        look = self._lookout.look(())
        actions = [action for action in look.breakers if action in look.budgets]
        for action in actions:
            self._budgets.close_breaker(action)
        said = [f"{action} may be tried again ({look.breakers[action].why.rstrip('.')})." for action in actions]
        before = look.pause
        if before is not None:
            self._budgets.resume()
            said.append(f"The pause by {before.who} ({before.why}) is over.")
        if said:
            self._store.event("Resume", {"actions": ", ".join(actions), "paused_by": before.who if before else ""})
            needy = self._store.needy()
            self._dispatch.mark(WorkKind.MAINTAIN, [(name, Urgency.DEFICIT) for name in needy], ends_wait=True)
            said.append(f"{len(needy)} nodes that lack addresses go on at once.")
        else:
            said.append("Nothing was paused or stopped.")
        return {"paused": False, "ended": _plain(before), "closed": actions, "explanation": said}

    def reread(self, node_or_instance: str) -> Report:
        """Have one instance read from EC2 by a worker, soon and for certain.

        Args:
            node_or_instance: a node's name, or the id of its instance.

        Returns:
            A report that names the node.

        Raises:
            NodeGone: no node of that name or instance is known; nothing was done.
        """
        name = self._node_of(node_or_instance)
        self._store.want_reads([name])
        self._dispatch.refresh_instances()
        return {"node": name, "enqueued": "eni.refresh_instances", "explanation": [f"A read of {name} is enqueued."]}

    def _node_of(self, node_or_instance: str) -> NodeName:
        if self._store.node(NodeName(node_or_instance)) is not None:
            return NodeName(node_or_instance)
        for obj in self._store.nodes():
            try:
                node = parse_node(obj)
            except InvalidInput:
                continue
            if node.instance_id == node_or_instance:
                return node.name
        raise NodeGone(f"{node_or_instance}: no CiliumNode of that name or instance is known; is the watcher running?")


def _plain(pause: Pause | None) -> dict[str, Any] | None:
    """As JSON has it: what a task returns is read by people and by other programs."""
    return None if pause is None else {"who": pause.who, "why": pause.why, "since": pause.since}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name}={value!r} says nothing: give a text that others understand")
    if len(value) > TEXT_LONGEST:
        raise InvalidInput(f"{name} is {len(value)} characters long; at most {TEXT_LONGEST} are kept")
    return value.strip()
