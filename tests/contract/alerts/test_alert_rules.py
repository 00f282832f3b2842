"""Each alert of the chart, as Prometheus evaluates it: when it fires, when it does not, and what it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest
from promtool import RULES, check_rules

if TYPE_CHECKING:
    from pathlib import Path

JOB = {"cluster": "prod", "job": "eni-tasks"}
SCRAPED = {**JOB, "instance": "exporter:9464"}
WELL = "0x80"  # for 20 min


class Case(NamedTuple):
    """Series in promtool's notation, one value each 15 s, that fire an alert at one time and did not at another."""

    alert: str
    series: dict[str, str]
    quiet_at: str
    fires_at: str
    labels: dict[str, str]
    value: str = ""


CASES = [
    Case(
        "EniTasksNodesInDeficit",
        {"oldest_deficit_seconds": "0+15x80"},
        quiet_at="6m",
        fires_at="6m30s",
        labels=SCRAPED,
        value="6m 30s",
    ),
    Case(
        "EniTasksNodesInTrouble",
        {"nodes_in_trouble": "3x200"},
        quiet_at="29m",
        fires_at="30m",
        labels=SCRAPED,
        value="3",
    ),
    Case(
        "EniTasksNodesAtCapacity",
        {'ipam_nodes{category="at-capacity"}': "1x10 3x200", 'ipam_nodes{category="total"}': "10x300"},
        quiet_at="32m",
        fires_at="33m",
        labels=SCRAPED,
        value="30%",
    ),
    Case(
        "EniTasksInstanceClaimedTwice",
        {'nodes{reason="instance-of-another-node"}': "0x10 2x60", 'nodes{reason="deficit"}': "7x80"},
        quiet_at="7m",
        fires_at="8m",
        labels={**SCRAPED, "reason": "instance-of-another-node"},
        value="2",
    ),
    Case(
        "EniTasksSubnetNearlyEmpty",
        {'ipam_available_ips_per_subnet{subnet_id="subnet-1",availability_zone="z"}': "32x40 31x80"},
        quiet_at="20m",
        fires_at="20m30s",
        labels={**JOB, "subnet_id": "subnet-1", "availability_zone": "z"},
        value="31",
    ),
    Case(
        "EniTasksThrottled",
        {'ec2_throttled_timestamp_seconds{operation="AttachNetworkInterface"}': "0+15x120"},
        quiet_at="14m45s",
        fires_at="15m15s",
        labels={**JOB, "operation": "AttachNetworkInterface"},
    ),
    Case(
        "EniTasksReadsFailing",
        {"inventory_age_seconds": "0+15x100", "infrastructure_age_seconds": "30x100"},
        quiet_at="13m",
        fires_at="13m30s",
        labels=SCRAPED,
    ),
    Case(
        "EniTasksReadsFailing",
        {'ipam_nodes{category="total"}': "0x10 5x100"},
        quiet_at="5m",
        fires_at="6m",
        labels={**SCRAPED, "category": "total"},
    ),
    Case(
        "EniTasksQueueNotMoving",
        {
            'work_oldest_overdue_seconds{kind="maintain"}': "0 15 30 45 60 75 90",
            'work_oldest_overdue_seconds{kind="publish"}': "25x10",
            'work_oldest_overdue_seconds{kind="fleet"}': "25x10",
        },
        quiet_at="1m",
        fires_at="1m15s",
        labels={**JOB, "kind": "maintain"},
        value="1m 15s",
    ),
    Case(
        "EniTasksQueueNotMoving",
        {
            'work_oldest_overdue_seconds{kind="maintain"}': "25x10",
            'work_oldest_overdue_seconds{kind="fleet"}': "0 15 30 45 60 75 90",
        },
        quiet_at="30s",
        fires_at="45s",
        labels={**JOB, "kind": "fleet"},
        value="45s",
    ),
    Case(
        "EniTasksBreakerOpen",
        {'ec2_breaker_open{operation="CreateNetworkInterface"}': "0x10 1x60"},
        quiet_at="7m",
        fires_at="8m",
        labels={**JOB, "operation": "CreateNetworkInterface"},
    ),
    Case("EniTasksPaused", {"paused": "1x300"}, quiet_at="59m", fires_at="60m", labels=SCRAPED),
    Case(
        "EniTasksRunsFailing",
        {
            'task_run_seconds_count{task="eni.maintain_node",outcome="error"}': "0+1x200",
            'task_run_seconds_count{task="eni.publish_node",outcome="ok"}': "0+1x200",
            'task_run_seconds_count{task="eni.refresh_inventory",outcome="error"}': "7x200",
        },
        quiet_at="14m",
        fires_at="16m",
        labels={**JOB, "task": "eni.maintain_node"},
    ),
    Case("EniTasksOrphans", {"orphans": "2x300"}, quiet_at="59m", fires_at="60m", labels=SCRAPED, value="2"),
    Case("EniTasksStateDown", {"state_up": "1x10 0x40"}, quiet_at="4m30s", fires_at="5m", labels=SCRAPED),
    Case("EniTasksExporterMissing", {"state_up": "1x10 _x100"}, quiet_at="10m", fires_at="18m", labels={}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{case.fires_at}")
def test_it_fires_and_is_silent_before(case: Case, tmp_path: Path) -> None:
    rule = RULES[case.alert]
    expected = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {name: expanded(text, case) for name, text in rule["annotations"].items()},
    }
    check_rules(
        tmp_path,
        {
            "input_series": [{"series": selector(name), "values": values} for name, values in case.series.items()],
            "alert_rule_test": [
                {"alertname": case.alert, "eval_time": case.quiet_at, "exp_alerts": []},
                {"alertname": case.alert, "eval_time": case.fires_at, "exp_alerts": [expected]},
            ],
        },
    )


def test_none_fires_while_all_is_well(tmp_path: Path) -> None:
    """And none while a busy fleet is served within half a minute."""
    series = {
        "state_up": "1x80",
        "oldest_deficit_seconds": "0 15 30x80",
        "nodes_in_trouble": WELL,
        'ipam_nodes{category="total"}': "1000x80",
        'ipam_nodes{category="at-capacity"}': "100x80",
        "inventory_age_seconds": "0 15 30 45 60 5 20 35 50 65 5x70",
        "infrastructure_age_seconds": "0 15 30 45 60 5 20 35 50 65 5x70",
        'work_oldest_overdue_seconds{kind="maintain"}': "0 5 20 25 12x80",
        'work_oldest_overdue_seconds{kind="publish"}': "0 5 20 25 12x80",
        'work_oldest_overdue_seconds{kind="fleet"}': "0 5 0 25 2x80",
        'ec2_breaker_open{operation="CreateNetworkInterface"}': WELL,
        "paused": WELL,
        "orphans": WELL,
    }
    tests = [{"alertname": alert, "eval_time": time, "exp_alerts": []} for alert in RULES for time in ("1m", "19m")]
    inputs = [{"series": selector(name), "values": values} for name, values in series.items()]
    check_rules(tmp_path, {"input_series": inputs, "alert_rule_test": tests})


def test_each_alert_has_a_case() -> None:
    assert {case.alert for case in CASES} == RULES.keys()


def selector(name: str) -> str:
    """A series as Prometheus holds it after a scrape."""
    bare, _, labels = name.rstrip("}").partition("{")
    given = ",".join(filter(None, (*(f'{key}="{value}"' for key, value in SCRAPED.items()), labels)))
    return f"eni_tasks_{bare}{{{given}}}"


def expanded(text: str, case: Case) -> str:
    """An annotation with the values of its templates."""
    text = re.sub(r"{{ \$labels\.(\w+) }}", lambda found: case.labels[found[1]], text)
    return re.sub(r"{{ \$value[^}]*}}", case.value, text)
