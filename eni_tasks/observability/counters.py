"""What one process counts and times, in memory, until the sums are drained; threads share it.

Counting costs a lock and an addition, never a call: `services.flush_counters` brings the sums to Redis. Without
a flush they are lost, and their size is bounded by the number of series.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from eni_tasks.observability.metrics import METRICS

SUM = "sum"


class Series(NamedTuple):
    """One figure: a counter's sum, or of a histogram its `SUM` or the number within one bucket.

    `part` is "" for a counter; a bucket is named by its upper bound, and holds only what is above the
    bound before it. `labels` are values, in the order in which the metric names its labels.
    """

    name: str
    part: str
    labels: tuple[str, ...]


class Counters:
    """Sums since the last `drain`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[Series, float] = {}

    def count(self, name: str, labels: Mapping[str, str] | None = None, value: float = 1.0) -> None:
        """Add to a counter.

        Args:
            name: a counter of `metrics`, without the prefix.
            labels: a value for each label that it has.
            value: how much, not negative.

        Raises:
            KeyError: there is no such metric, or it lacks a label: a mistake of the caller.
        """
        series = Series(name, "", _values(name, labels or {}))
        with self._lock:
            self._sums[series] = self._sums.get(series, 0.0) + value

    def observe(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Enter one observation of a histogram; arguments as of `count`."""
        values, bounds = _values(name, labels), METRICS[name].buckets
        index = bisect_left(bounds, value)
        bucket = Series(name, bound_name(bounds[index] if index < len(bounds) else None), values)
        total = Series(name, SUM, values)
        with self._lock:
            self._sums[bucket] = self._sums.get(bucket, 0.0) + 1
            self._sums[total] = self._sums.get(total, 0.0) + value

    def drain(self) -> dict[Series, float]:
        """Take what was added since the last time."""
        with self._lock:
            sums, self._sums = self._sums, {}
        return sums


def bound_name(bound: float | None) -> str:
    """Name a bucket by its upper bound, as Prometheus writes it; None is the last one, without a bound."""
    return "+Inf" if bound is None else str(bound)


def _values(name: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels[label] for label in METRICS[name].labels)
