"""What the pages about the chart name exists: values, settings, commands. The chart has the project's version."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import typer.main
import yaml
from chart import CHART, ROOT

from eni_tasks.cli.commands import main
from eni_tasks.settings import PREFIX, Settings

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (CHART / "README.md", CHART / "templates" / "NOTES.txt", *(ROOT / "docs").glob("[mr]*.md"))
}
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())

every_page = pytest.mark.parametrize("page", PAGES)


def test_all_pages_are_looked_at():
    assert {"helm/eni-tasks/README.md", "docs/runbook.md", "docs/migration.md", "docs/metrics.md"} <= PAGES.keys()


@every_page
def test_values_exist(page):
    named = re.findall(r"`((?:\w+\.)+\w+)`", PAGES[page])
    for path in named:
        first, *rest = path.split(".")
        if first not in VALUES or first == "settings":
            continue
        place: Any = VALUES[first]
        for key in rest:
            assert isinstance(place, dict), path
            assert key in place, path
            place = place[key]


@every_page
def test_settings_exist(page):
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    named = {PREFIX + name.upper() for name in re.findall(r"`settings\.(\w+)`", PAGES[page])}
    named |= set(re.findall(rf"`({PREFIX}[A-Z0-9_]+)", PAGES[page]))
    assert named <= known


@every_page
def test_commands_exist(page):
    commands = set(typer.main.get_command(main).commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"(?:(?:`|-- )eni-tasks|^eni) ([a-z]+)", PAGES[page], re.MULTILINE))
    assert named <= commands


@every_page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)", PAGES[page]):
        assert ((ROOT / page).parent / link).exists(), link


def test_the_chart_has_the_projects_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["name"], about["version"], about["appVersion"]) == (project["name"], *[project["version"]] * 2)
