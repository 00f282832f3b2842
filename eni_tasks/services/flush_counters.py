"""Adds what a process counted to the shared sums: every few seconds, and at its end.

Sums that Redis did not take are dropped, not kept: only its answer may have been lost, and a count is added at
most once as far as possible.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from eni_tasks.errors import StateUnavailable
from eni_tasks.observability.counters import Counters
from eni_tasks.observability.logs import logger
from eni_tasks.state.counters import SharedCounters

INTERVAL_SECONDS = 5.0


class CounterFlusher:
    """Flushes while the block runs, and once more at its end.

    Args:
        counters: what the process counts into.
        shared: the sums of all processes.
    """

    def __init__(self, counters: Counters, shared: SharedCounters) -> None:
        self._counters = counters
        self._shared = shared
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counter-flusher", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        self.flush()

    def flush(self) -> None:
        """Add what was counted since the last flush."""
        sums = self._counters.drain()
        if not sums:
            return
        try:
            self._shared.add(sums)
        except StateUnavailable as error:
            logger().warning("counts_lost", series=len(sums), error=str(error))

    def _run(self) -> None:
        while not self._ending.wait(INTERVAL_SECONDS):
            self.flush()
