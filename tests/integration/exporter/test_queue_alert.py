"""Workers of one queue stand still: Prometheus' own evaluation of the chart's rule, on what a real exporter shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from exporter_under_test import exporting
from prometheus_client.parser import text_string_to_metric_families
from promtool import STEP_SECONDS, check_rules

from eni_tasks.exporter import collector
from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Pass, WorkKind

if TYPE_CHECKING:
    from pathlib import Path

    from exporter_under_test import Exporter
    from pumped import System

NODE = NodeName("node")
TICK_SECONDS = 5
PERIOD_SECONDS = 60  # of the read of everything: it is made at 0 s and at 60 s
STANDSTILL_SECONDS = 120  # by then the alert fires
NOT_MOVING = 'count by (kind) (ALERTS{alertname="EniTasksQueueNotMoving",alertstate="firing"})'


class Standstill:
    """A system that runs for a minute, and then without the workers of one queue, scraped all the time."""

    def __init__(self, system: System, exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
        self._system, self._exporter, self._monkeypatch = system, exporter, monkeypatch
        self._ticker = system.services.ticker(lambda: None)
        self._elapsed = 0
        self.scrapes: list[dict[str, float]] = []

    def run(self, seconds: int) -> None:
        """Let time pass: the watcher ticks, the workers that are there work, and the exporter is scraped."""
        for elapsed in range(self._elapsed, self._elapsed + seconds, TICK_SECONDS):
            if elapsed % STEP_SECONDS == 0:
                self.scrapes.append(self._scrape())
            if elapsed % PERIOD_SECONDS == 0:
                # The lifetime of this slot is Redis' own: it does not follow the clock of the scripts.
                self._system.redis.delete(self._system._keys.slot("inventory"))
            self._system.ingest()
            self._ticker.tick()
            self._system.pump()
            self._system.later(TICK_SECONDS)
        self._elapsed += seconds

    def stop(self, queue: str, *, claiming: bool) -> None:
        """Stop the workers of a queue: messages reach them and nothing follows.

        Args:
            queue: which.
            claiming: whether one of them stops in the middle of a run, and leaves its claim.
        """
        services = self._system.services
        kind, name, *bodies = {
            "ec2": (WorkKind.MAINTAIN, NODE, (services.maintain, "run"), (services.orphans, "run")),
            "apiserver": (WorkKind.PUBLISH, NODE, (services.publish, "run")),
            "resync": (
                *(WorkKind.FLEET, Pass.INVENTORY),
                *((services.refresh, "read_inventory"), (services.refresh, "read_requested")),
            ),
        }[queue]
        for part, method in bodies:
            self._monkeypatch.setattr(part, method, lambda *_: {})
        if claiming:
            assert services.state.queue.claim(kind, name)

    def input_series(self) -> list[dict[str, str]]:
        """All scrapes in promtool's notation."""
        names = sorted(set().union(*self.scrapes))
        return [
            {"series": name, "values": " ".join(str(scrape.get(name, "_")) for scrape in self.scrapes)}
            for name in names
        ]

    def _scrape(self) -> dict[str, float]:
        found = {}
        for family in text_string_to_metric_families(self._exporter.get("/metrics").data.decode()):
            for sample in family.samples:
                labels = {**sample.labels, "job": "eni-tasks", "instance": "exporter:9464"}
                text = ",".join(f'{name}="{value}"' for name, value in labels.items())
                found[f"{sample.name}{{{text}}}"] = sample.value
        return found


@pytest.mark.parametrize("claiming", [False, True], ids=["idle", "with a claim"])
@pytest.mark.parametrize(("queue", "kind"), [("ec2", "maintain"), ("apiserver", "publish"), ("resync", "fleet")])
def test_the_alert_fires_within_two_minutes(  # noqa: PLR0913 - fixtures and two parameters
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: str, kind: str, *, claiming: bool
) -> None:
    monkeypatch.setattr(collector, "KEPT_SECONDS", 0.0)
    system.add_node()
    with exporting(system.services) as exporter:
        world = Standstill(system, exporter, monkeypatch)
        # The last thing that is done is a read of everything: the next one is due a minute later.
        world.run(PERIOD_SECONDS + TICK_SECONDS)
        world.stop(queue, claiming=claiming)
        system.use(4)
        world.run(STANDSTILL_SECONDS)
    last_seconds = PERIOD_SECONDS + STANDSTILL_SECONDS
    firing = {"labels": f'{{kind="{kind}"}}', "value": 1}
    check_rules(
        tmp_path,
        {
            "input_series": world.input_series(),
            "promql_expr_test": [
                {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{PERIOD_SECONDS}s", "exp_samples": []},
                {"expr": NOT_MOVING, "eval_time": f"{last_seconds}s", "exp_samples": [firing]},
            ],
        },
    )
