"""What collectors remember of one another's passes. All times are Redis' own.

Losing it is no loss: interfaces are then seen for the first time once more, and wait anew. Every method
raises StateUnavailable when Redis does not answer.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from eni_tasks.model.network import InstanceId, InterfaceId
from eni_tasks.ports.work import Claim


class OrphanMemory(Protocol):
    """Since when interfaces have been seen unattached, and whose nodes were removed."""

    def note(self, claim: Claim, interface_ids: Collection[InterfaceId]) -> dict[InterfaceId, float] | None:
        """Note what a pass saw unattached, and forget all others: they were not so in an unbroken line.

        Returns:
            For how many seconds passes have seen each, 0 for a new one; None if the claim is no
            longer ours (nothing was noted).
        """
        ...

    def seen(self) -> dict[InterfaceId, float]:
        """For how many seconds passes have seen each interface that is noted; notes nothing."""
        ...

    def forget(self, interface_id: InterfaceId) -> None:
        """Let an interface wait anew, should it be seen again: it was deleted, or EC2 refused to."""
        ...

    def note_removed(self, instance_ids: Collection[InstanceId]) -> None:
        """Note instances (at least one) whose node was removed; forgotten after an hour."""
        ...

    def removed(self) -> dict[InstanceId, float]:
        """For how many seconds the node of each noted instance has been gone."""
        ...
