"""The pages for operators name commands, options, log events and tasks that exist, and small pictures."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from eni_tasks.cli.commands import main
from eni_tasks.tasks.registry import TASK_QUEUES

ROOT = Path(__file__).parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "helm" / "eni-tasks" / "README.md"]
COMMAND = re.compile(r"(?:^|`|\$ |-- )eni-tasks ([a-z][^`#|\n]*)", re.MULTILINE)
EVENT = re.compile(r"logger\(\)\.(?:debug|info|warning|error|exception|critical)\(\s*\"(\w+)\"")


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


def test_every_log_event_is_told_and_no_other():
    written = {event for path in (ROOT / "eni_tasks").rglob("*.py") for event in EVENT.findall(path.read_text())}
    _, _, table = OPERATIONS.partition("| event | what it says |")
    told = {
        event for row in re.findall(r"^\| (`\w+`.*?) \|", table, re.MULTILINE) for event in re.findall(r"`(\w+)`", row)
    }
    assert told == written


def test_every_task_is_told():
    assert {name for name in TASK_QUEUES if f"`{name}`" not in OPERATIONS} <= {"eni.refresh_instances"}


def test_pictures_are_there_and_small():
    pictures = re.findall(r"!\[.+?\]\((images/.+?)\)", OPERATIONS)
    assert len(pictures) == 2
    assert all((ROOT / "docs" / picture).stat().st_size < 100 * 1024 for picture in pictures)
