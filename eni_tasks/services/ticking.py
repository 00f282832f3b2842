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
        stuck_seconds: float,
        on_new_epoch: Callable[[], None],
    ) -> None:
        self._store = store
        self._dispatch = dispatch
        self._resync_seconds = resync_seconds
        self._orphan_seconds = orphan_seconds
        self._quiet_seconds = quiet_seconds
        self._on_new_epoch = on_new_epoch
        self._stuck_seconds = stuck_seconds
        self._epoch: str | None = None
        self._begun_at: float | None = None
        self._kept_up = True

    def tick(self) -> bool:
        """Do what is due now.

        Returns:
            Whether the system keeps up: no node has lacked addresses, and no read has been due, for too long.

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
        return self._keeps_up()

    def _keeps_up(self) -> bool:
        """Compare what is oldest with what is bearable, and tell the log when that changes."""
        progress = self._store.progress()
        begun_at = self._begun_at = self._begun_at or progress.now
        needy_seconds = progress.now - (progress.needy_since or progress.now)
        unread_seconds = progress.now - (progress.read_at or begun_at)
        keeps_up = max(needy_seconds, unread_seconds - self._resync_seconds) < self._stuck_seconds
        if self._kept_up and not keeps_up:
            logger().error(
                "falls_behind",
                node=progress.needy,
                needy_seconds=round(needy_seconds),
                unread_seconds=round(unread_seconds),
            )
        elif keeps_up and not self._kept_up:
            logger().info("keeps_up")
        self._kept_up = keeps_up
        return keeps_up
