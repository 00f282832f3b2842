"""One call from request to answer: latency, rate, rights, faults, effect, record.

What people and tests do to this EC2 from behind is in `control`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from eni_tasks.sandbox.ec2 import render
from eni_tasks.sandbox.ec2.actions import Actions
from eni_tasks.sandbox.ec2.calls import DROPPED, OK, Call, CallLog
from eni_tasks.sandbox.ec2.gate import Faults, Throttle, check_rights
from eni_tasks.sandbox.ec2.oracle import Oracle
from eni_tasks.sandbox.ec2.query import Query
from eni_tasks.sandbox.ec2.refusals import Dropped, Refused, dry_run
from eni_tasks.sandbox.ec2.world import World

if TYPE_CHECKING:
    from eni_tasks.sandbox.ec2.knobs import Fault


class Answer(msgspec.Struct, frozen=True):
    """An HTTP answer."""

    status: int
    body: bytes


class Ec2Sandbox:
    """An EC2 in memory, without its sockets.

    Args:
        world: what there is; an empty one when not given.
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
            The answer, also for refusals.

        Raises:
            Dropped: a fault says to close the connection.
        """
        query = Query.parse(body)
        action = query.text("Action", "")
        latencies = self.world.knobs.latency_seconds
        time.sleep(latencies.get(action, latencies.get("*", 0.0)))
        fault, outcome = self._carry_out(action, query, caller)
        if fault is not None and fault.delay_seconds:
            time.sleep(fault.delay_seconds)
        if isinstance(outcome, Dropped):
            raise outcome
        request_id = self._request_id()
        if isinstance(outcome, Refused):
            return Answer(outcome.status, render.refusal(outcome.code, outcome.message, request_id).encode())
        return Answer(200, render.response(action, outcome, request_id).encode())

    def _carry_out(self, action: str, query: Query, caller: str) -> tuple[Fault | None, str | Refused | Dropped]:
        world = self.world
        with world.lock:
            now = world.settle()
            fault = None
            effect = False
            outcome: str | Refused | Dropped
            try:
                self._throttle.spend(world, action, query)
                check_rights(world, action)
                fault = self.faults.take(world, action, query)
                if fault is not None and not fault.after:
                    _strike(fault)
                outcome = self._apply(action, query, fault)
                effect = True
                if fault is not None and fault.after:
                    _strike(fault)
            except (Refused, Dropped) as refused:
                outcome = refused
            code = outcome.code if isinstance(outcome, Refused) else DROPPED if isinstance(outcome, Dropped) else OK
            parameters = query.subject()
            self.log.add(Call(time=now, action=action, parameters=parameters, code=code, caller=caller, effect=effect))
        return fault, outcome

    def _apply(self, action: str, query: Query, fault: Fault | None) -> str:
        if query.flag("DryRun"):
            self._actions.known(action)
            raise dry_run()
        self.world.hidden = frozenset(fault.hides if fault is not None else ())
        return self._actions.apply(action, self.world, query)

    def _request_id(self) -> str:
        self._requests += 1
        return f"00000000-0000-4000-8000-{self._requests:012x}"


def _strike(fault: Fault) -> None:
    if fault.drop:
        raise Dropped
    if fault.code:
        raise Refused(fault.code, fault.message, fault.status)
