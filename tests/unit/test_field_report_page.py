"""docs/field-reports.md names tests that exist, and every id that a test carries."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "field-reports.md").read_text()
ROWS = re.findall(r"^\| ([BPS]\d+) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
NAMED = re.findall(r"`([\w/]+\.py)::([\w:]+)`", PAGE)


def names_in(path: Path) -> set[str]:
    """Names of the tests in a file, those of classes as Class::test."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


def test_every_test_that_is_named_exists():
    assert len(NAMED) > 100
    files = {file: names_in(ROOT / "tests" / file) if (ROOT / "tests" / file).is_file() else set() for file, _ in NAMED}
    assert [f"{file}::{name}" for file, name in NAMED if name not in files[file]] == []


def test_every_line_names_a_test_or_says_why_there_is_none():
    assert len({number for number, _, _ in ROWS}) == len(ROWS) > 70
    assert [number for number, _, held in ROWS if "::" not in held and not held.startswith("not built: ")] == []


def test_every_id_that_a_test_carries_is_told():
    carried = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        carried |= set(re.findall(r"\"\"\"((?:[BP]\d\d(?:, )?)+)", text))
        carried |= set(re.findall(r"def test_([bp]\d\d)_", text))
    ids = {number.upper() for entry in carried for number in entry.split(", ") if number}
    assert len(ids) > 25
    assert ids - {number for number, _, _ in ROWS} == set()
