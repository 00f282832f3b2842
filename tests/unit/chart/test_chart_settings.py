"""Every setting can be given in the values, and reaches the process with the meaning that it had there."""

from __future__ import annotations

import os

import chart_schema
import pytest
from chart import environment, objects

from eni_tasks.settings import PREFIX, Settings, load

SETTINGS = sorted(set(Settings.model_fields) - chart_schema.ELSEWHERE)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)


@pytest.fixture
def arriving(monkeypatch: pytest.MonkeyPatch):
    """Install with these settings, and read them as a process does."""

    def arrive(**settings: object) -> Settings:
        variables = environment(objects({"settings": {"cluster": "demo", **settings}}), "exporter")
        for name, value in variables.items():
            if name.startswith(PREFIX):
                monkeypatch.setenv(name, value)
        return load()

    return arrive


def test_the_schema_knows_exactly_the_settings_that_there_are():
    assert chart_schema.current(chart_schema.SCHEMA.read_text()) == chart_schema.SCHEMA.read_text(), "run `make docs`"


@pytest.mark.parametrize("name", SETTINGS)
def test_each_default_may_be_written_down(arriving, name):
    default = Settings.model_fields[name].default
    if isinstance(default, tuple):
        default = list(default)
    if isinstance(default, dict):
        default = {k: ":".join(map(str, v)) if isinstance(v, tuple) else v for k, v in default.items()}
    assert getattr(arriving(**{name: default}), name) == Settings.model_fields[name].default


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        pytest.param("resync_seconds", 86_400, 86_400, id="a large number keeps its digits"),
        pytest.param("resync_seconds", 2.5, 2.5, id="a part of a second"),
        pytest.param("pre_allocate", 0, 0, id="zero is a number"),
        pytest.param("subnet_ids", ["subnet-1", "subnet-2"], ("subnet-1", "subnet-2"), id="a list"),
        pytest.param("subnet_ids", "subnet-1,subnet-2", ("subnet-1", "subnet-2"), id="a list as text"),
        pytest.param("eni_tags", {"team": "net", "a/b": "c d"}, {"team": "net", "a/b": "c d"}, id="tags"),
        pytest.param("eni_tags", "team=net", {"team": "net"}, id="tags as text"),
    ],
)
def test_values_keep_their_meaning(arriving, name, given, value):
    assert getattr(arriving(**{name: given}), name) == value


def test_a_changed_setting_starts_new_pods():
    def checksum(**settings: object) -> str:
        (deployment,) = [
            o
            for o in objects({"settings": settings})
            if o["kind"] == "Deployment" and o["metadata"]["name"] == "eni-tasks-watcher"
        ]
        found: str = deployment["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
        return found

    assert checksum(resync_seconds=60) == checksum(resync_seconds=60) != checksum(resync_seconds=61)


@pytest.mark.parametrize(
    ("settings", "permitted"),
    [({}, True), ({"surge": True}, True), ({"surge": False}, False)],
    ids=["by-default", "on", "off"],
)
def test_pods_may_be_read_only_for_surge(settings: dict[str, bool], permitted: bool) -> None:  # noqa: FBT001 - the case
    (role,) = [each for each in objects({"settings": settings}) if each["kind"] == "ClusterRole"]
    verbs = [rule["verbs"] for rule in role["rules"] if rule["resources"] == ["pods"]]
    assert verbs == ([["list", "watch"]] if permitted else [])
