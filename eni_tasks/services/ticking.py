"""What is due once a second: overdue hints, periodic reads, and noticing that Redis was emptied.

Any number of processes may tick: the scripts are atomic and a slot decides who starts a period.
"""

from __future__ import annotations

from collections.abc import Callable

from eni_tasks.observability.logs import logger
from eni_tasks.ports.state import Store
from eni_tasks.services.dispatch import Dispatch

SWEEP_LIMIT = 200  # hints sent again per kind and second: a lost fleet is back within seconds, no queue floods


class Ticker:
    """One tick; the loop around it belongs to the watcher."""

    def __init__(  # noqa: PLR0913 - the joint hands in every part once
        self,
        store: Store,
        dispatch: Dispatch,
        *,
        resync_seconds: float,
        orphan_seconds: float,
        quiet_seconds: float,
        on_new_epoch: Callable[[], None],
    ) -> None:
        self._store = store
        self._dispatch = dispatch
        self._resync_seconds = resync_seconds
        self._orphan_seconds = orphan_seconds
        self._quiet_seconds = quiet_seconds
        self._on_new_epoch = on_new_epoch
        self._epoch: str | None = None

    def tick(self) -> None:
        """Do what is due now.

        Raises:
            StateUnavailable: Redis did not answer; the next tick tries again.
        """
        epoch = self._store.begin_epoch(self._epoch, quiet_seconds=self._quiet_seconds)
        if self._epoch not in (None, epoch):
            # Every watcher lists again, not only the one that noticed: that one may die before it has.
            logger().warning("redis_was_emptied", epoch=epoch)
            self._on_new_epoch()
        self._epoch = epoch
        self._dispatch.sweep(SWEEP_LIMIT)
        if self._store.take_slot("inventory", self._resync_seconds):
            self._dispatch.refresh_inventory()
        elif self._store.due_reads():
            self._dispatch.refresh_instances()
        if self._store.take_slot("orphans", self._orphan_seconds):
            self._dispatch.collect_orphans()
