"""One thread per process that renews all claims of the process at a third of the lease.

A lost claim is only remembered here; `spend` refuses the next mutation, so that no timing of this
thread can let two workers mutate one node.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from eni_tasks.errors import StateUnavailable
from eni_tasks.observability.logs import logger
from eni_tasks.ports.work import Claim, Work


class Keeper:
    """Renews claims while they are held."""

    def __init__(self, work: Work, lease_seconds: float) -> None:
        self._work = work
        self._interval_seconds = lease_seconds / 3
        self._claims: dict[str, Claim] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, claim: Claim) -> Iterator[None]:
        """Keep `claim` alive while the block runs."""
        with self._lock:
            self._claims[claim.token] = claim
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
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
                lost = self._work.renew(claims)
            except StateUnavailable as error:
                # The lease runs out by itself if Redis stays away; `spend` would refuse anyhow.
                logger().warning("leases_not_renewed", claims=len(claims), error=str(error))
                continue
            for claim in lost:
                logger().warning("lease_lost", kind=claim.kind, node=claim.name)
                with self._lock:
                    self._claims.pop(claim.token, None)
