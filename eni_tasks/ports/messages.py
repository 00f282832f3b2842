"""Sending messages to workers. A message carries a name and nothing else; losing one loses nothing."""

from __future__ import annotations

from typing import Protocol

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Pass, WorkKind


class Messages(Protocol):
    """Messages that work is pending; raises StateUnavailable when the broker does not take them."""

    def send(self, kind: WorkKind, name: NodeName | Pass) -> None:
        """Say that `name` waits for a run of `kind`."""
        ...
