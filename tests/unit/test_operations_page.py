"""The pages for operators name commands and options that exist, and small pictures."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from eni_tasks.cli.commands import main

ROOT = Path(__file__).parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "helm" / "eni-tasks" / "README.md"]
COMMAND = re.compile(r"(?:^|`|\$ |-- )eni-tasks ([a-z][^`#|\n]*)", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    found = {(page.name, text.strip()) for page in PAGES for text in COMMAND.findall(page.read_text())}
    return sorted(found)


@pytest.mark.parametrize(("page", "text"), commands())
def test_a_command_that_a_page_names_exists_with_its_options(page: str, text: str):
    name, *arguments = shlex.split(text.replace("…", ""), comments=True)
    known = typer.main.get_command(main).commands
    assert name in known, f"{page}: no command {name}"
    options = {option for parameter in known[name].params for option in parameter.opts} | {"--help"}
    assert [word for word in arguments if word.startswith("--") and word.partition("=")[0] not in options] == []


def test_pictures_are_there_and_small():
    pictures = re.findall(r"!\[.+?\]\((images/.+?)\)", OPERATIONS)
    assert len(pictures) == 4
    assert all((ROOT / "docs" / picture).stat().st_size < 200 * 1024 for picture in pictures)
