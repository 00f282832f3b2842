"""Sending hints to workers. A message carries a name and nothing else; losing one loses nothing."""

from __future__ import annotations

from typing import Protocol

from eni_tasks.model.network import NodeName
from eni_tasks.ports.state import WorkKind


class Messages(Protocol):
    """Hints that something waits; raises StateUnavailable when the broker does not take them."""

    def send_work(self, kind: WorkKind, name: NodeName) -> None:
        """Say that a node waits for a run of `kind`."""
        ...

    def send_refresh_instances(self) -> None:
        """Say that instances wait to be read."""
        ...

    def send_refresh_inventory(self) -> None:
        """Say that the periodic read of everything is due."""
        ...
