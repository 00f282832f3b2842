"""Write the table of docs/settings.md from eni_tasks/settings.py: `make docs`. A test says when it is due."""

from __future__ import annotations

from pathlib import Path

from eni_tasks.settings import PREFIX, Settings, as_text

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
HEAD = "| variable | default | what it means |\n| --- | --- | --- |\n"
BEGIN, END = "<!-- Written by `make docs`: begin -->\n", "<!-- Written by `make docs`: end -->\n"


def table() -> str:
    """One row for each setting."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = as_text(field.default)
        rows.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else '(none)'} | {field.description} |\n")
    return HEAD + "".join(rows)


def current(page: str) -> str:
    """The page with the table as it must be; what stands around it stays."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
