"""Rules about the repository's own text: it stands on any machine, and its modules stay small."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES = 400
TEXTS = {"", ".cfg", ".ini", ".json", ".lock", ".lua", ".md", ".py", ".sh", ".toml", ".txt", ".typed", ".yaml", ".yml"}

# Written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.}~>-])/(?:work|home|root|opt|Users)(?=/)")
REGISTRY = re.compile(
    r"py[p]i\.org|python[h]osted\.org|np[m]js\.org|docker\.[i]o|gh[c]r\.io|qua[y]\.io|proxy\.gol[a]ng\.org|public\.e[c]r\.aws"
)
LOCKED = re.compile(r"[a-z0-9][a-z0-9.-]*==[A-Za-z0-9.+!]+( ; .+)?")


@functools.cache
def texts() -> list[Path]:
    """Every text of the repository; what tools leave in dot folders is none of it."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        folders = path.relative_to(ROOT).parts[:-1]
        generated = any(f == "__pycache__" or (f.startswith(".") and f not in {".ci", ".github"}) for f in folders)
        # In a linked worktree `.git` is a file.
        if path.is_file() and not generated and path.suffix in TEXTS and path.name != ".git":
            found.append(path)
    return found


def findings(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_search_sees_the_repository():
    names = {str(path.relative_to(ROOT)) for path in texts()}
    assert {"Makefile", ".ci/run", "README.md", "eni_tasks/settings.py", "requirements.lock"} <= names


def test_no_path_of_one_machine_is_named():
    assert findings(MACHINE_PATH) == []


def test_no_registry_is_named():
    assert findings(REGISTRY) == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_file_holds_pinned_names_only(name):
    lines = (ROOT / name).read_text().splitlines()
    assert [line for line in lines if not LOCKED.fullmatch(line)] == []


def test_tools_and_runtime_are_locked_at_the_same_versions():
    runtime, dev = (
        set((ROOT / name).read_text().splitlines()) for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert runtime - dev == set()


def test_no_module_is_too_long():
    modules = [path for folder in ("eni_tasks", "workers") for path in sorted((ROOT / folder).rglob("*.py"))]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}
