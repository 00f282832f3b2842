"""Shared state as Prometheus' metric families; scrapes within a few seconds share one read."""

from __future__ import annotations

import platform
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from prometheus_client import Metric as Family
from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from eni_tasks.errors import StateUnavailable
from eni_tasks.exporter import gauges
from eni_tasks.exporter.gauges import Sample
from eni_tasks.exporter.triggers import of_triggers
from eni_tasks.observability.counters import SUM, Series, bound_name
from eni_tasks.observability.logs import logger
from eni_tasks.observability.metrics import CLUSTER, METRICS, PREFIX, Kind, Metric
from eni_tasks.services.status import Status
from eni_tasks.services.tick import falls_behind
from eni_tasks.settings import Settings
from eni_tasks.state import State

KEPT_SECONDS = 3.0
BUILD = Sample("build_info", (version("eni-tasks"), platform.python_version()), 1)


class StateCollector(Collector):
    """Reads everything when it is scraped, one read at a time.

    Args:
        state: work, queues, rate limits, subnets, and what the processes counted.
        status: the nodes.
        queues: names of the Celery queues.
        settings: the cluster's name, whether each node has series of its own, and when the system falls behind.
    """

    def __init__(self, state: State, status: Status, queues: Sequence[str], settings: Settings) -> None:
        self._state = state
        self._status = status
        self._queues = queues
        self._settings = settings
        self._lock = threading.Lock()
        self._kept: list[Family] = []
        self._read_at = -KEPT_SECONDS
        self._began_at: float | None = None
        self._answered_at: float | None = None
        # Of this process, under the names that all clients of Prometheus use; registered by `collect` alone.
        self._process = ProcessCollector(registry=None)

    def describe(self) -> Iterable[Family]:
        """Name nothing in advance: so the registry reads nothing while it is set up."""
        return ()

    def collect(self) -> Iterable[Family]:
        """Give all families, not older than KEPT_SECONDS; without Redis, only since when it doesn't answer."""
        with self._lock:
            if time.monotonic() - self._read_at >= KEPT_SECONDS:
                self._kept = self._read()
                self._read_at = time.monotonic()
            return (*self._kept, *self._process.collect())

    def _read(self) -> list[Family]:
        started = time.monotonic()
        try:
            samples, sums = list(self._samples()), self._state.counters.read()
        except StateUnavailable as error:
            logger().warning("state_unavailable", error=str(error))
            # Nothing of what was known then: an alert must not fire, or stay silent, on what may long be over.
            answered = () if self._answered_at is None else (self._answered_sample(self._answered_at),)
            return families([Sample("state_up", (), 0), *answered, BUILD], {}, self._settings.cluster)
        self._answered_at = time.time()
        samples += (Sample("state_up", (), 1), self._answered_sample(self._answered_at), BUILD)
        samples.append(Sample("exporter_read_seconds", (), time.monotonic() - started))
        return families(samples, sums | of_triggers(sums), self._settings.cluster)

    @staticmethod
    def _answered_sample(at: float) -> Sample:
        return Sample("state_answered_timestamp_seconds", (), at)

    def _samples(self) -> Iterator[Sample]:
        summary, nodes = self._state.summary.read(self._queues), list(self._status.nodes())
        progress = self._state.coordination.progress()
        self._began_at = self._began_at or progress.now
        yield Sample("falls_behind", (), falls_behind(progress, self._began_at, self._settings))
        yield from gauges.of_state(summary)
        yield from gauges.of_fleet(nodes, summary.now)
        if self._settings.node_metrics:
            yield from gauges.of_nodes(nodes)


def families(samples: Iterable[Sample], sums: dict[Series, float], cluster: str) -> list[Family]:
    """Build the families of Prometheus' client from samples and sums.

    Args:
        samples: gauges.
        sums: counters and histograms; those that fit no metric of this version (another version counted them) are
            left out.
        cluster: the label that all series have, so that one Prometheus can hold several clusters.

    Returns:
        Families in the order of `metrics`; one without any sample is left out.
    """
    gauged: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        gauged[sample.name].append(sample)
    summed: dict[str, dict[tuple[str, ...], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for (name, part, labels), value in sums.items():
        if name in METRICS and len(labels) == len(METRICS[name].labels):
            summed[name][labels][part] = value
    found: list[Family] = []
    for name, metric in METRICS.items():
        if metric.kind is Kind.GAUGE and name in gauged:
            gauge = GaugeMetricFamily(PREFIX + name, metric.help, labels=(CLUSTER, *metric.labels))
            for sample in gauged[name]:
                gauge.add_metric((cluster, *sample.labels), sample.value)
            found.append(gauge)
        elif name in summed:
            found.append(_family_of_sums(metric, {(cluster, *labels): parts for labels, parts in summed[name].items()}))
    return found


def _family_of_sums(metric: Metric, sums: dict[tuple[str, ...], dict[str, float]]) -> Family:
    name, names = PREFIX + metric.name, (CLUSTER, *metric.labels)
    if metric.kind is Kind.COUNTER:
        counter = CounterMetricFamily(name, metric.help, labels=names)
        for labels, parts in sums.items():
            counter.add_metric(labels, parts.get("", 0.0))
        return counter
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, metric.help, labels=names)
        for labels, parts in sums.items():
            histogram.add_metric(labels, list(_cumulative(metric, parts)), parts.get(SUM, 0.0))
        return histogram
    # prometheus_client gives every counter the suffix _total, which Cilium's names lack.
    family = Family(name, metric.help, "unknown")
    for labels, parts in sums.items():
        family.add_sample(name, dict(zip(names, labels, strict=True)), parts.get("", 0.0))
    return family


def _cumulative(metric: Metric, parts: dict[str, float]) -> Iterator[tuple[str, float]]:
    total = 0.0
    for bound in (*metric.buckets, None):
        total += parts.get(bound_name(bound), 0.0)
        yield bound_name(bound), total
