"""What one step of a run came to, as a value."""

from __future__ import annotations

from eni_tasks.model.network import Interface, Value
from eni_tasks.model.node import Memory


class Step(Value, frozen=True):
    """The outcome of one action.

    `did` says in words what was done; `changed` that EC2's side of the node is different now. `stop` ends the
    run; `again_after_seconds` then says when the node is to be looked at again (None: when something changes).
    A `failed` step counts towards the node's back-off; with `shared` the trouble is not the node's own (EC2, the
    account, the network), and the back-off is shorter. `trouble` is shown in the object. `memory` replaces the
    node's memory if given. `interfaces` are all that the instance has after a change, if that is known.
    """

    did: str = ""
    changed: bool = False
    stop: bool = False
    failed: bool = False
    shared: bool = False
    again_after_seconds: float | None = None
    trouble: str = ""
    memory: Memory | None = None
    interfaces: tuple[Interface, ...] | None = None
