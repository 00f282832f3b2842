"""Imports point down only: the contracts of pyproject.toml, checked with the tests."""

from __future__ import annotations

from pathlib import Path

from importlinter.cli import lint_imports

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_layers_hold(capsys):
    # The analysis is kept in no cache: a test leaves nothing behind.
    broken = lint_imports(str(PROJECT), no_cache=True)
    assert not broken, capsys.readouterr().out
