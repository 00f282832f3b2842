"""Write the tables of docs/ that repeat the code: `make docs`. A test fails when it is due.

A table stands between `<!-- Written by `make docs`: NAME -->` and `<!-- end -->`; what stands around it is prose.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from eni_tasks.observability import metrics
from eni_tasks.observability.events import EVENTS
from eni_tasks.observability.metrics import Metric
from eni_tasks.setting_texts import as_text
from eni_tasks.settings import PREFIX, Settings
from eni_tasks.tasks.registry import TASKS

DOCS = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(r"(<!-- Written by `make docs`: ([a-z0-9-]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def settings_table() -> str:
    """One row for each setting."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = as_text(field.default)
        rows.append((f"`{PREFIX}{name.upper()}`", f"`{default}`" if default else "(none)", str(field.description)))
    return _table(("variable", "default", "what it means"), rows)


def metrics_table(group: Sequence[Metric]) -> str:
    """One row for each metric of a group."""
    rows = [
        (f"`{metrics.PREFIX}{each.name}`", each.kind.value, ", ".join(f"`{label}`" for label in each.labels), each.help)
        for each in group
    ]
    return _table(("metric", "kind", "labels", "meaning"), rows)


def events_table() -> str:
    """One row for each log event."""
    return _table(("event", "meaning"), [(f"`{event}`", meaning) for event, meaning in EVENTS.items()])


def tasks_table() -> str:
    """One row for each task."""
    rows = []
    for name, (body, queue) in TASKS.items():
        _self, *parameters = inspect.signature(body).parameters.values()
        shown = [p.name if p.default is p.empty else f"{p.name}={str(p.default).lower()}" for p in parameters]
        arguments = ", ".join(f"`{each}`" for each in shown)
        rows.append((f"`{name}`", f"`{queue}`", arguments, str(inspect.getdoc(body))))
    return _table(("task", "queue", "arguments", "what it does"), rows)


# Page → the tables on it.
TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "settings.md": {"settings": settings_table},
    "operations.md": {"events": events_table, "tasks": tasks_table},
    "metrics.md": {
        "metrics-fleet": partial(metrics_table, metrics.FLEET),
        "metrics-facts": partial(metrics_table, metrics.FACTS),
        "metrics-work": partial(metrics_table, metrics.WORK),
        "metrics-ec2": partial(metrics_table, metrics.EC2),
        "metrics-changes": partial(metrics_table, metrics.CHANGES),
        "metrics-triggers": partial(metrics_table, metrics.CILIUM),
        "metrics-exporter": partial(metrics_table, metrics.EXPORTER),
    },
}


def current(page: str, text: str) -> str:
    """A page with its tables as they must be.

    Args:
        page: its name in docs/.
        text: what it says now.

    Raises:
        ValueError: it lacks the place of a table.
    """
    if missing := TABLES[page].keys() - {match[2] for match in _BLOCK.finditer(text)}:
        raise ValueError(f"docs/{page} has no place for: {', '.join(sorted(missing))}")
    return _BLOCK.sub(lambda match: match[1] + TABLES[page][match[2]]() + match[3], text)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|\n" for line in lines)


if __name__ == "__main__":
    for name in TABLES:
        path = DOCS / name
        path.write_text(current(name, path.read_text()))
