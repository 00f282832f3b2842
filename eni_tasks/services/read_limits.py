"""The rate limit of EC2's reads: each page that any worker asks for takes a token of its action's shared bucket."""

from __future__ import annotations

import time

from eni_tasks.observability.counters import Counters
from eni_tasks.services.mutate import Postponed
from eni_tasks.state.limiter import Limiter

SHORT_WAIT_SECONDS = 1.0  # waited on the spot; for anything longer the worker is given back


class ReadLimits:
    """Implements `eni_tasks.ports.ec2.ReadLimits`.

    Args:
        limiter: the shared buckets.
        counters: what the process counts into.
    """

    def __init__(self, limiter: Limiter, counters: Counters) -> None:
        self._limiter = limiter
        self._counters = counters

    def take(self, action: str) -> None:
        """Wait shortly for the permission to read.

        Raises:
            Postponed: no token is left; `retry_after_seconds` says when there will be one.
            StateUnavailable: Redis did not answer.
        """
        waited_seconds = 0.0
        while wait_seconds := self._limiter.take_read(action):
            if waited_seconds + wait_seconds > SHORT_WAIT_SECONDS:
                raise Postponed(f"{action} has to wait: no token is left for it", wait_seconds)
            time.sleep(wait_seconds)
            waited_seconds += wait_seconds
        self._counters.observe("ec2_api_rate_limit_duration_seconds", {"operation": action}, waited_seconds)

    def throttled(self, action: str) -> None:
        """Halve the rate of reads that EC2 throttled, for all workers."""
        self._limiter.throttled(action)
