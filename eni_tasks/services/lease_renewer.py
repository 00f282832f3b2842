"""One thread per process that renews all its claims at a third of the lease, and the local end of each lease.

Redis fences its own writes and every permission for a mutation. What Redis can't fence, a write to the API server or
a call that was permitted a moment ago, is fenced by the process' own clock: the lease counts from before it was asked
for, by a clock that also runs while the machine is suspended. So a process that was frozen notices before it writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from eni_tasks.errors import LeaseLost, StateUnavailable
from eni_tasks.model.work import Claim
from eni_tasks.observability.logs import logger
from eni_tasks.state.queue import WorkQueue


def local_seconds() -> float:
    """A clock that never goes back, and that counts the time during which the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseRenewer:
    """Renews claims while they are held.

    Args:
        queue: where they are renewed.
    """

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self._lease_seconds = queue.lease_ms / 1000
        self._claims: dict[str, Claim] = {}
        self._ends: dict[str, float] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, claim: Claim, asked_at: float) -> Iterator[None]:
        """Renew `claim` while the block runs.

        Args:
            claim: a live claim.
            asked_at: `local_seconds` before it was asked for.
        """
        with self._lock:
            self._claims[claim.token] = claim
            self._ends[claim.token] = asked_at + self._lease_seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease-renewer", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._claims.pop(claim.token, None)
                self._ends.pop(claim.token, None)

    def check(self, claim: Claim) -> None:
        """Make sure, right before a write that Redis can't fence, that a claim is still held.

        Raises:
            LeaseLost: its lease has ended by the local clock; another worker may hold the work.
        """
        with self._lock:
            ends_at = self._ends.get(claim.token, 0.0)
        if local_seconds() >= ends_at:
            raise LeaseLost(f"{claim.name}: the lease ended before the write; another worker continues")

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._lease_seconds / 3):
            with self._lock:
                claims = list(self._claims.values())
            if not claims:
                continue
            asked_at = local_seconds()
            try:
                lost = {claim.token for claim in self._queue.renew(claims)}
            except StateUnavailable as error:
                # The leases run out while Redis stays away; every mutation and write is then refused.
                logger().warning("leases_not_renewed", claims=len(claims), error=str(error))
                continue
            with self._lock:
                for claim in claims:
                    if claim.token in lost:
                        logger().warning("lease_lost", kind=claim.kind, name=claim.name)
                        self._claims.pop(claim.token, None)
                        self._ends.pop(claim.token, None)
                    elif claim.token in self._ends:
                        self._ends[claim.token] = asked_at + self._lease_seconds
