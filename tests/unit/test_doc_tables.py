"""The tables of docs/ are those that the code makes, and the tables in the code are complete."""

from __future__ import annotations

import ast
from pathlib import Path

import doc_tables
import pytest

from eni_tasks.observability.events import EVENTS

PACKAGE = Path(__file__).parents[2] / "eni_tasks"


@pytest.mark.parametrize("page", doc_tables.TABLES)
def test_a_page_has_the_tables_that_the_code_makes(page: str) -> None:
    text = (doc_tables.DOCS / page).read_text()
    assert doc_tables.current(page, text) == text, "run `make docs`"


def test_a_page_that_lost_the_place_of_a_table_is_named() -> None:
    with pytest.raises(ValueError, match=r"docs/operations.md has no place for: events, tasks"):
        doc_tables.current("operations.md", "# Operations\n")


def logged() -> set[str]:
    """The first argument of every call of a method of `logger()`."""
    calls = (
        node
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    return {
        ast.literal_eval(call.args[0])
        for call in calls
        if isinstance(call.func.value, ast.Call) and ast.unparse(call.func.value.func) == "logger"
    }


def test_every_event_that_is_logged_is_in_the_table_and_no_other() -> None:
    assert logged() == set(EVENTS)
