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

from eni_tasks.observability.metrics import CLUSTER, METRICS, PREFIX, Kind

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
GROUPS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
PANELS = [panel for panel in file("dashboard.json")["panels"] if panel["type"] != "row"]

# Labels that Prometheus itself gives, or that all our series have.
SCRAPED = {"job", "instance", "le", CLUSTER}


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
    (group,) = one(found, "PrometheusRule", "")["spec"]["groups"]
    for rule in group["rules"]:
        assert rule["annotations"].pop("runbook_url") == f"https://wiki.example/eni-tasks#{rule['alert'].lower()}"
    assert without_comments([group]) == without_comments(GROUPS)
    assert json.loads(one(found, "ConfigMap", "dashboard")["data"]["eni-tasks.json"]) == file("dashboard.json")


def without_comments(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for rule in [rule for group in groups for rule in group["rules"]]:
        rule["expr"] = re.sub(r" # limits\.\w+", "", rule["expr"])
    return groups


def test_no_alert_links_to_a_runbook_that_is_published_nowhere():
    (group,) = one(objects({"monitoring": {"alerts": {"enabled": True}}}), "PrometheusRule", "")["spec"]["groups"]
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in group["rules"])


LIMITS = yaml.safe_load((CHART / "values.yaml").read_text())["monitoring"]["alerts"]["limits"]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_changes_the_rules_that_name_it_and_no_other(limit):
    (group,) = one(objects(alerts(limits={limit: 7.25})), "PrometheusRule", "")["spec"]["groups"]
    changed = 0
    for rule, before in zip(group["rules"], RULES, strict=True):
        marked = re.findall(rf"([0-9.]+) # limits\.{limit}\b", text_of(before["alert"]))
        assert {float(number) for number in marked} <= {LIMITS[limit]}
        assert rule["expr"].count("7.25") == len(marked)
        changed += len(marked)
    assert changed


def test_single_alerts_can_be_changed_or_left_out():
    (group,) = one(objects(VALUE_SETS["placed"]), "PrometheusRule", "")["spec"]["groups"]
    rules = {rule["alert"]: rule for rule in group["rules"]}
    assert {rule["alert"] for rule in RULES} - rules.keys() == {"EniTasksOrphans"}
    assert (rules["EniTasksPaused"]["for"], rules["EniTasksPaused"]["labels"]) == ("4h", {"severity": "info"})
    assert rules["EniTasksThrottled"]["expr"] == "vector(0) > 1"
    assert rules["EniTasksNodesInDeficit"]["expr"] == "eni_tasks_oldest_deficit_seconds > 120"


def text_of(alert: str) -> str:
    """One rule as the file has it, with its comments."""
    _, _, rest = (CHART / "files" / "alerts.yaml").read_text().partition(f"- alert: {alert}\n")
    return rest.partition("- alert: ")[0]


def alerts(**values: Any) -> dict[str, Any]:
    return {"monitoring": {"alerts": {"enabled": True, **values}}}


@pytest.mark.parametrize("text", dashboard_expressions())
def test_a_panel_shows_what_was_chosen_above(text):
    """The cluster and the job, and of series by node the node."""
    for selector in selectors(promql.parse(text)):
        chosen = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
        assert (chosen["cluster"], chosen["job"]) == ("$cluster", "$job")
        series = series_of(selector.name)
        assert series
        assert chosen.get("target_node") == ("$node" if "target_node" in series[1] else None)


def test_choices_come_from_series_that_exist_and_depend_on_the_ones_before():
    before: set[str] = set()
    for variable in file("dashboard.json")["templating"]["list"]:
        if variable["type"] == "query":
            series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
            (selector,) = selectors(promql.parse(series))
            assert series_of(selector.name) is not None
            assert label in series_of(selector.name)[1] | SCRAPED
            assert {matcher.value for matcher in selector.matchers.matchers} == before
            before.add(f"${variable['name']}")
    assert before == {"$cluster", "$job", "$node"}


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
