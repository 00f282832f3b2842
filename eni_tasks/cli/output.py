"""How commands answer: tables on a terminal, plain columns in a pipe, JSON when asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from eni_tasks.errors import EniTasksError, InvalidInput, NodeGone

JsonFlag = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]

TROUBLE, WRONG_USE = 1, 2


def print_json(value: Any) -> None:
    """Print any value of ours as indented JSON."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a heading: a table on a terminal, tab-separated columns in a pipe."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            sys.stdout.write("\t".join(str(cell) for cell in row) + "\n")
        return
    Console().print(table(columns, rows))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Build the table that `print_table` shows; numbers are aligned to the right."""
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[index], int) for row in rows)
        shown.add_column(column, justify="right" if numbers else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        shown.add_row(*(str(cell) for cell in row))
    return shown


def fail(message: str, code: int = TROUBLE) -> NoReturn:
    """Say what is wrong on standard error and end with a code: 1 found trouble, 2 wrong use."""
    Console(stderr=True, highlight=False).print(message, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def told() -> Iterator[None]:
    """Turn our errors into a message and an exit code instead of a trace."""
    try:
        yield
    except InvalidInput as error:
        fail(str(error), WRONG_USE)
    except NodeGone as error:
        fail(str(error))
    except EniTasksError as error:
        fail(f"{type(error).__name__}: {error}")
