"""How long a refusal of a further interface holds.

EC2 refuses an attach when the instance has no free slot. On many types volumes take slots, too, and they come and
go, so the refusal proves nothing for long: a further interface is tried again after 10 minutes, then after twice that,
and so on, up to 6 hours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from eni_tasks.model.node import Memory, Node

FIRST_SECONDS = 600.0
LONGEST_SECONDS = 6 * 3600.0


def refused(memory: Memory, node: Node, now: float) -> Memory:
    """Enter that EC2 has just refused a further interface.

    Args:
        memory: what is known.
        node: whose instance it is.
        now: Redis' time in seconds.
    """
    again = memory.interface_refused_type == node.instance_type
    return msgspec.structs.replace(
        memory,
        interface_refusals=memory.interface_refusals + 1 if again else 1,
        interface_refused_at=now,
        interface_refused_type=node.instance_type,
    )


def accepted(memory: Memory) -> Memory:
    """Enter that EC2 has accepted an interface."""
    return msgspec.structs.replace(memory, interface_refusals=0, interface_refused_at=0.0, interface_refused_type="")


def next_try_at(memory: Memory, node: Node) -> float:
    """When a further interface may be tried again, in Redis seconds; 0 if none was refused for this type."""
    if not memory.interface_refusals or memory.interface_refused_type != node.instance_type:
        return 0.0
    return memory.interface_refused_at + min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (memory.interface_refusals - 1))
