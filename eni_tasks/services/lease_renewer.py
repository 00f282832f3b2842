"""One thread per process that renews all its claims at a third of the lease.

A claim that was lost is only removed from the list here. The limiter refuses the next mutation of its holder, so
no timing of this thread can let two workers mutate one node.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.work import Claim
from eni_tasks.observability.logs import logger
from eni_tasks.state.queue import WorkQueue


class LeaseRenewer:
    """Renews claims while they are held."""

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self._interval_seconds = queue.lease_ms / 3000
        self._claims: dict[str, Claim] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, claim: Claim) -> Iterator[None]:
        """Renew `claim` while the block runs."""
        with self._lock:
            self._claims[claim.token] = claim
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease-renewer", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._claims.pop(claim.token, None)

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._interval_seconds):
            with self._lock:
                claims = list(self._claims.values())
            if not claims:
                continue
            try:
                lost = self._queue.renew(claims)
            except StateUnavailable as error:
                # The leases run out while Redis stays away; the limiter then refuses every mutation.
                logger().warning("leases_not_renewed", claims=len(claims), error=str(error))
                continue
            for claim in lost:
                logger().warning("lease_lost", kind=claim.kind, name=claim.name)
                with self._lock:
                    self._claims.pop(claim.token, None)
