"""An exporter under test, and what a scrape of it shows."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from eni_tasks.exporter.collector import StateCollector
from eni_tasks.exporter.serving import make_server
from eni_tasks.observability.metrics import PREFIX
from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eni_tasks.bootstrap import Services

Scraped = dict[tuple[str, tuple[str, ...]], float]


class Exporter:
    """An exporter under test, and one who scrapes it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = urllib3.PoolManager(retries=False, timeout=10.0)

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        return self.http.request("GET", self.url + path)

    def scrape(self) -> Scraped:
        """Each sample by its name without the prefix and the values of its labels, by the alphabet of their names.

        The label `cluster`, which all of ours have alike, and the process' own series are left out.
        """
        found: Scraped = {}
        for family in text_string_to_metric_families(self.get("/metrics").data.decode()):
            for sample in family.samples:
                if sample.name.startswith("process_"):
                    continue
                assert "cluster" in sample.labels
                labels = tuple(value for name, value in sorted(sample.labels.items()) if name != "cluster")
                key = (sample.name.removeprefix(PREFIX), labels)
                assert key not in found
                found[key] = sample.value
        return found


@contextmanager
def exporting(parts: Services) -> Iterator[Exporter]:
    seen = StateCollector(parts.state, parts.status, QUEUES, parts.settings)
    with make_server(seen, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        exporter = Exporter(f"http://127.0.0.1:{server.server_port}")
        yield exporter
        exporter.http.clear()
        server.shutdown()
        thread.join()


def of(scraped: Scraped, name: str) -> dict[str, float]:
    """The series of a metric with one label."""
    return {labels[0]: value for (found, labels), value in scraped.items() if found == name}
