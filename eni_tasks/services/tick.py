"""What is due once a second: overdue work, periodic passes, and noticing that Redis lost its data.

Any number of processes may tick: the scripts are atomic, and a slot decides which process starts a period.
"""

from __future__ import annotations

from collections.abc import Callable

from eni_tasks.model.work import Pass
from eni_tasks.observability.logs import logger
from eni_tasks.services.work import Work
from eni_tasks.settings import Settings
from eni_tasks.state import State
from eni_tasks.state.coordination import Generation, Progress

REQUEUE_LIMIT = 200  # per kind and second: a whole fleet is back within seconds, and no queue is flooded


class Ticker:
    """One tick; the loop around it belongs to the watcher.

    Args:
        state: the shared state.
        work: what is enqueued.
        settings: the periods.
        quiet_seconds: for how long a mutation may run and then not be seen by reads.
        on_new_generation: called when Redis turns out to have lost its data, or to hold older data.
    """

    def __init__(
        self,
        state: State,
        work: Work,
        settings: Settings,
        *,
        quiet_seconds: float,
        on_new_generation: Callable[[], None],
    ) -> None:
        self._state = state
        self._work = work
        self._settings = settings
        self._quiet_seconds = quiet_seconds
        self._on_new_generation = on_new_generation
        self._generation: Generation | None = None
        self._began_at: float | None = None
        self._kept_up = True

    def tick(self) -> None:
        """Do what is due now, and log when the system begins or ceases to fall behind.

        Raises:
            StateUnavailable: Redis did not answer; the next tick tries again.
        """
        shared = self._state.coordination
        generation = shared.begin_generation(self._generation, quiet_seconds=self._quiet_seconds)
        if self._generation is not None and self._generation.id != generation.id:
            # Every watcher lists again, not only the one that noticed: that one may die before it has.
            logger().warning("state_went_back", generation=generation.id)
            self._on_new_generation()
        if generation.beat == 1:
            # All facts of before count as unknown: they are read as soon as reads are accepted again.
            self._state.reads.request(self._state.nodes.names(), delay_seconds=self._quiet_seconds)
        self._generation = generation
        self._work.requeue_overdue(REQUEUE_LIMIT)
        if shared.take_slot("inventory", self._settings.resync_seconds):
            self._work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
        # Beside the inventory, not instead of it: that one may start each second, and be refused tokens.
        if self._state.reads.due_count():
            self._work.enqueue_pass(Pass.INSTANCES)
        if shared.take_slot("orphans", self._settings.orphan_interval_seconds):
            self._work.collect_orphans()
        self._compare_progress()

    def _compare_progress(self) -> None:
        """Compare what is oldest with what is bearable, and log when that changes."""
        progress = self._state.coordination.progress()
        self._began_at = self._began_at or progress.now
        keeps_up = not falls_behind(progress, self._began_at, self._settings)
        if self._kept_up and not keeps_up:
            logger().error(
                "falls_behind",
                node=progress.deficit_node,
                deficit_seconds=round(progress.deficit_seconds),
                unread_seconds=round(progress.unread_seconds(self._began_at)),
            )
        elif keeps_up and not self._kept_up:
            logger().info("keeps_up")
        self._kept_up = keeps_up


def falls_behind(progress: Progress, began_at: float, settings: Settings) -> bool:
    """Whether a node has lacked addresses, or a read has been overdue, for STUCK_SECONDS.

    Args:
        progress: what is oldest.
        began_at: when the caller began to look, in Redis seconds: a first read is due from then on.
        settings: the limits.
    """
    overdue_seconds = progress.unread_seconds(began_at) - settings.resync_seconds
    return max(progress.deficit_seconds, overdue_seconds) >= settings.stuck_seconds
