"""How commands are asked and answer: tables on a terminal, plain columns in a pipe, JSON when asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec
import rich.table
import typer
from rich.console import Console, OverflowMethod
from rich.padding import Padding
from rich.text import Text

from eni_tasks.errors import EniTasksError, InvalidInput

JsonFlag = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]

TROUBLE, WRONG_USE = 1, 2
STYLES = {"trouble": "bold red", "unknown": "yellow", "note": "yellow", "ok": "green", "no": "red"}
SENTENCE_WIDTH = 20  # a column of sentences that is narrower than this can't be read


def print_json(value: Any) -> None:
    """Print any value of ours as indented JSON."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def print_report(report: Mapping[str, Any], *, json: bool) -> None:
    """Print a report: its explanation, or all of it as JSON."""
    if json:
        print_json(report)
    else:
        typer.echo("\n".join(report["explanation"]))


class Table(NamedTuple):
    """Rows under a heading; a table without a title has none printed.

    Where a terminal leaves the last column less than `last_width`, each row is printed as a paragraph.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str = ""
    last_width: int = SENTENCE_WIDTH


def print_page(*parts: str | Table) -> None:
    """Print sentences and tables, in their order; nothing is cut, however narrow the terminal is."""
    if not sys.stdout.isatty():
        for part in parts:
            sys.stdout.write(part + "\n" if isinstance(part, str) else _plain(part))
        return
    console = Console(highlight=False, markup=False)
    for part in parts:
        if isinstance(part, str):
            console.print(part)
            continue
        if part.title:
            console.print(f"\n{part.title}", style="bold underline")
        if _fits(part, console.width):
            console.print(table(part.columns, part.rows, whole=True))
        else:
            _print_records(part, console)


def _plain(part: Table) -> str:
    lines = [part.title] if part.title else []
    # Texts of EC2 and of other systems may hold line ends; a row stays a line.
    lines += ["\t".join(" ".join(str(cell).split()) for cell in row) for row in (part.columns, *part.rows)]
    return "".join(f"{line}\n" for line in lines)


def _fits(part: Table, width: int) -> bool:
    """Whether each row's cells fit into a line, if the last one, often a sentence, may go on below."""
    widths = [max(len(str(row[index])) for row in (part.columns, *part.rows)) for index in range(len(part.columns))]
    gaps = 2 * (len(widths) - 1)
    return sum(widths[:-1]) + gaps + min(widths[-1], part.last_width) <= width


def _print_records(part: Table, console: Console) -> None:
    """Print each row as a paragraph: the first cell, the other cells that are not empty, the last one."""
    for row in part.rows:
        first, *named = [f"{column} {cell}" for column, cell in zip(part.columns, row, strict=True) if cell != ""]
        console.print(first, style="bold")
        for line in (", ".join(named[:-1]), *named[-1:]):
            if line:
                console.print(Padding(line, (0, 0, 0, 2)))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, whole: bool = False) -> rich.table.Table:
    """Build a table for a terminal; numbers are aligned to the right.

    Args:
        columns: the headings.
        rows: the cells.
        whole: what does not fit of the last cell goes on below; else it is cut, and a row stays a line.
    """
    shown = rich.table.Table(box=None, header_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[index], int) for row in rows)
        folds = whole and index == len(columns) - 1
        how: OverflowMethod = "fold" if folds else "ellipsis"
        shown.add_column(column, justify="right" if numbers else "left", overflow=how, no_wrap=not folds)
    for row in rows:
        shown.add_row(*(Text(str(cell), STYLES.get(str(cell), "")) for cell in row))
    return shown


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something takes its time; gives a way to say how far it is.

    Standard output stays free for the answer.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(f"{what}…") as status:
        yield lambda progress: status.update(f"{what}: {progress}")


def fail(message: str, code: int = TROUBLE) -> NoReturn:
    """Say what is wrong on standard error and end with a code: 1 found trouble, 2 wrong use."""
    report_error(message)
    raise typer.Exit(code)


def report_error(message: str) -> None:
    """Say what is wrong on standard error."""
    Console(stderr=True, highlight=False).print(message, style="red", markup=False, soft_wrap=True)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn our errors into a message and an exit code instead of a trace."""
    try:
        yield
    except InvalidInput as error:
        fail(str(error), WRONG_USE)
    except EniTasksError as error:
        fail(str(error))
