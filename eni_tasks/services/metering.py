"""Bringing what a process counted to the shared sums: every few seconds, and at its end.

Sums that Redis did not take are dropped, not kept: its answer alone may have been lost, and what is
counted is counted at most once as far as we can help it.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from eni_tasks.errors import StateUnavailable
from eni_tasks.observability.logs import logger
from eni_tasks.observability.meter import Meter
from eni_tasks.ports.meters import Meters

INTERVAL_SECONDS = 5.0


class Metering:
    """Flushes while the block runs, and once more at its end.

    Args:
        meter: what the process counts into.
        meters: where the sums of all processes are.
    """

    def __init__(self, meter: Meter, meters: Meters) -> None:
        self._meter = meter
        self._meters = meters
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metering", daemon=True)

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
        sums = self._meter.drain()
        if not sums:
            return
        try:
            self._meters.add(sums)
        except StateUnavailable as error:
            logger().warning("counts_lost", series=len(sums), error=str(error))

    def _run(self) -> None:
        while not self._ending.wait(INTERVAL_SECONDS):
            self.flush()
