"""One call from request to answer: latency, rate, rights, faults, effect, log. Knows no sockets."""

from __future__ import annotations

import time
from collections import Counter, deque

import msgspec

from eni_tasks.sandbox.ec2 import render
from eni_tasks.sandbox.ec2.actions import Actions
from eni_tasks.sandbox.ec2.errors import Ec2Error, dry_run, unauthorized
from eni_tasks.sandbox.ec2.knobs import Fault, Faults, Throttle
from eni_tasks.sandbox.ec2.oracle import Oracle
from eni_tasks.sandbox.ec2.query import Query
from eni_tasks.sandbox.ec2.world import World
from eni_tasks.sandbox.serving import Dropped

KEPT_CALLS = 200_000
OK = "OK"
DROPPED = "Dropped"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call; `code` is OK, EC2's code, or Dropped; `effect` says whether it was carried out.

    `caller` is the access key that signed it, which distinguishes processes.
    """

    time: float
    action: str
    parameters: dict[str, str]
    code: str
    caller: str
    effect: bool


class CallLog:
    """Keeps the last calls and counts all; the world's lock guards it."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=KEPT_CALLS)
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, call: Call) -> None:
        """Add a call."""
        self._calls.append(call)
        self._counts[call.action, call.code] += 1

    def calls(self, action: str = "") -> list[Call]:
        """Returns the calls since the last reset, of one action or of all, oldest first."""
        return [call for call in self._calls if action in {"", call.action}]

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the number of calls since the last reset, by action and code."""
        counts: dict[str, dict[str, int]] = {}
        for (action, code), count in sorted(self._counts.items()):
            counts.setdefault(action, {})[code] = count
        return counts

    def reset(self) -> None:
        """Start a new log."""
        self._calls.clear()
        self._counts.clear()


class Answer(msgspec.Struct, frozen=True):
    """An HTTP answer."""

    status: int
    body: bytes


class Ec2Sandbox:
    """An EC2 in memory, without its sockets.

    Args:
        world: its records; an empty world when not given.
    """

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.oracle = Oracle(self.world)
        self.faults = Faults()
        self.log = CallLog()
        self._actions = Actions()
        self._throttle = Throttle()
        self._requests = 0

    def handle(self, body: str, caller: str) -> Answer:
        """Answer one request of the query protocol.

        Args:
            body: the form.
            caller: the access key that signed it.

        Returns:
            The answer, also for refused calls.

        Raises:
            Dropped: a fault says to close the connection.
        """
        query = Query.parse(body)
        action = query.text("Action", "")
        if latency := self.world.knobs.latency(action):
            time.sleep(latency)
        fault, outcome = self._carry_out(action, query, caller)
        if fault is not None and fault.delay_seconds:
            time.sleep(fault.delay_seconds)
        if isinstance(outcome, Dropped):
            raise outcome
        request_id = self._request_id()
        if isinstance(outcome, Ec2Error):
            return Answer(outcome.status, render.error(outcome.code, outcome.message, request_id).encode())
        return Answer(200, render.response(action, outcome, request_id).encode())

    def _carry_out(self, action: str, query: Query, caller: str) -> tuple[Fault | None, str | Ec2Error | Dropped]:
        world = self.world
        with world.lock:
            now = world.settle()
            fault = None
            effect = False
            outcome: str | Ec2Error | Dropped
            try:
                self._throttle.acquire(world.knobs.buckets, action, query, now)
                if world.knobs.denies(action):
                    raise unauthorized()
                fault = self._due_fault(action, query)
                if fault is not None and not fault.after:
                    _strike(fault)
                outcome = self._apply(action, query, fault)
                effect = True
                if fault is not None and fault.after:
                    _strike(fault)
            except (Ec2Error, Dropped) as refused:
                outcome = refused
            code = outcome.code if isinstance(outcome, Ec2Error) else DROPPED if isinstance(outcome, Dropped) else OK
            parameters = query.subject()
            self.log.add(Call(time=now, action=action, parameters=parameters, code=code, caller=caller, effect=effect))
        return fault, outcome

    def _due_fault(self, action: str, query: Query) -> Fault | None:
        if not self.faults.pending():
            return None
        named = query.values()
        concerned = set(named)
        for identifier in named:
            interface_id = self.world.attachments.get(identifier, identifier)
            interface = self.world.interfaces.truth.by_id.get(interface_id)
            if interface is not None:
                concerned |= {interface.id, interface.subnet_id, interface.instance_id}
        return self.faults.take(action, query, concerned)

    def _apply(self, action: str, query: Query, fault: Fault | None) -> str:
        if query.flag("DryRun"):
            self._actions.known(action)
            raise dry_run()
        self.world.hidden = frozenset((*self.world.knobs.unlisted, *(fault.hides if fault is not None else ())))
        return self._actions.apply(action, self.world, query)

    def _request_id(self) -> str:
        self._requests += 1
        return f"00000000-0000-4000-8000-{self._requests:012x}"


def _strike(fault: Fault) -> None:
    if fault.drop:
        raise Dropped
    if fault.code:
        raise Ec2Error(fault.code, fault.message, fault.status)
