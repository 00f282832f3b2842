"""Alerts and dashboard use metrics that exist, with labels that they have; each alert has its place in the runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser as promql
import pytest
import yaml
from chart import CHART, ROOT, VALUE_SETS, file, objects, one

from eni_tasks.observability.metrics import METRICS, PREFIX, Kind

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
GROUPS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
PANELS = [panel for panel in file("dashboard.json")["panels"] if panel["type"] != "row"]

# Labels that Prometheus itself gives.
SCRAPED = {"job", "instance", "le"}


def series_of(name: str) -> tuple[Kind, set[str]] | None:
    """The kind and the labels of a series; of a histogram those of its three."""
    known = {PREFIX + metric.name: (metric.kind, set(metric.labels)) for metric in METRICS.values()}
    if name in known:
        return None if known[name][0] is Kind.HISTOGRAM else known[name]
    base = re.sub(r"_(bucket|count|sum)$", "", name)
    return known[base] if base in known and known[base][0] is Kind.HISTOGRAM else None


def selectors(expression: Any) -> Iterator[promql.VectorSelector]:
    """Every selector in a parsed expression, wherever it hangs."""
    if isinstance(expression, promql.VectorSelector):
        yield expression
        return
    for name in ("expr", "lhs", "rhs", "args", "vector_selector"):
        part = getattr(expression, name, None)
        for each in part if isinstance(part, list) else [part]:
            if each is not None:
                yield from selectors(each)


def dashboard_expressions() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel["targets"]]


def alert_expressions() -> list[str]:
    return [rule["expr"] for rule in RULES]


def grouped_by(text: str) -> set[str]:
    """The labels that an expression or a legend names."""
    named = re.findall(r"\b(?:by|ignoring|on)\s*\(([^)]*)\)", text) + re.findall(
        r"{{\s*(?:\$labels\.)?(\w+)\s*}}", text
    )
    return {label.strip() for part in named for label in part.split(",")} - {""}


def service_level_expressions() -> list[str]:
    """The queries that docs/operations.md gives for service levels."""
    _, _, section = (ROOT / "docs" / "operations.md").read_text().partition("## Service levels")
    return re.findall(r"\| `([^`]+)` \|$", section.partition("\n## ")[0], re.MULTILINE)


def test_each_service_level_has_a_query():
    assert len(service_level_expressions()) >= 6


@pytest.mark.parametrize("text", alert_expressions() + dashboard_expressions() + service_level_expressions())
def test_each_metric_and_each_of_its_labels_exists(text):
    found = list(selectors(promql.parse(text)))
    assert found, text
    labels = set(SCRAPED)
    for selector in found:
        series = series_of(selector.name)
        assert series is not None, f"there is no metric {selector.name}"
        labels |= series[1]
        for matcher in selector.matchers.matchers:
            assert matcher.name in series[1] | SCRAPED, f"{selector.name} has no label {matcher.name}"
    assert grouped_by(text) <= labels


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_legends_name_labels_that_the_expression_keeps(panel):
    for target in panel["targets"]:
        legend = grouped_by(target["legendFormat"])
        assert legend == grouped_by(target["expr"]) - {"le"}


def test_the_search_for_metrics_would_notice_a_wrong_one():
    assert series_of("eni_tasks_ipam_nodes") == (Kind.GAUGE, {"category"})
    assert series_of("eni_tasks_task_run_seconds_bucket") is not None
    assert series_of("eni_tasks_task_run_seconds") is None
    assert series_of("eni_tasks_paused_bucket") is None
    names = [s.name for s in selectors(promql.parse("max(a / (b > 0)) + sum by (x) (rate(c[5m])) or absent(d)"))]
    assert names == ["a", "b", "c", "d"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_has_its_place_in_the_runbook(rule):
    """A heading of its name, and under it what to look at and what to do."""
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert rule["labels"]["severity"] in {"critical", "warning"}
    entry = section(rule["alert"])
    for part in ("What it means", "Look", "Do"):
        assert f"**{part}.**" in entry, f"{rule['alert']}: no part {part!r} in docs/runbook.md"
    assert "eni-tasks " in entry


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_texts_of_an_alert_name_labels_that_it_has(rule):
    kept = grouped_by(rule["expr"]) - {"category"}
    for text in rule["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= kept


def test_the_runbook_has_no_alert_that_is_gone():
    entries = set(re.findall(r"^## (EniTasks\w+)$", RUNBOOK, re.MULTILINE))
    assert entries == {rule["alert"] for rule in RULES}


def test_the_chart_installs_the_files_as_they_are():
    found = objects(VALUE_SETS["everything"])
    (rules,) = [o for o in found if o["kind"] == "PrometheusRule"]
    there = json.dumps(rules["spec"]["groups"]).replace("https://wiki.example/eni-tasks#", "docs/runbook.md#")
    assert json.loads(there) == GROUPS
    assert json.loads(one(found, "ConfigMap", "dashboard")["data"]["eni-tasks.json"]) == file("dashboard.json")


def test_panels_lie_side_by_side():
    taken = set()
    for panel in file("dashboard.json")["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def section(heading: str) -> str:
    """What stands under a heading of the runbook."""
    (text,) = re.findall(rf"^## {heading}$\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL)
    return str(text)
