"""Links, anchors, files and settings that pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eni_tasks.settings import FLOWER_SETTINGS, PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "helm" / "eni-tasks" / "README.md",
]
CODE = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
# What a page calls a file of ours, in code marks.
FILE = re.compile(r"`([a-z0-9_]+(?:/[A-Za-z0-9_.-]+)+\.(?:py|lua|md|json|yaml|svg))`")
SETTING = re.compile(rf"{PREFIX}([A-Z0-9_]+)")
# History names what is gone.
LASTING = [page for page in PAGES if page.name != "CHANGELOG.md" and "decisions" not in page.parts]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(CODE.sub("", page.read_text()))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize("page", LASTING, ids=name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    places = (ROOT, ROOT / "eni_tasks", ROOT / "docs", ROOT / "helm" / "eni-tasks", page.parent)
    named = set(FILE.findall(page.read_text()))
    assert sorted(file for file in named if not any((place / file).exists() for place in places)) == []


@pytest.mark.parametrize("page", LASTING, ids=name)
def test_settings_that_a_page_names_exist(page: Path) -> None:
    known = {field.upper() for field in Settings.model_fields} | FLOWER_SETTINGS
    assert sorted(set(SETTING.findall(page.read_text())) - known) == []
