"""The command line: `eni-tasks …`, with `run` as its entry."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from eni_tasks.cli import admin, processes, status
from eni_tasks.cli.doctor import doctor
from eni_tasks.cli.events import events
from eni_tasks.cli.flower import flower
from eni_tasks.cli.output import JsonFlag, exit_on_error, print_json, report_error
from eni_tasks.cli.sandbox import sandbox
from eni_tasks.settings import load

CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

main = typer.Typer(
    name="eni-tasks",
    help="Keep every Kubernetes node's pool of AWS addresses at the right size.\n\n"
    "Exit codes: 0 fine, 1 found trouble, 2 wrong use.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run() -> None:
    """Run the command that the arguments name; never returns.

    Raises:
        SystemExit: with the exit code.
    """
    # Closed by the caller (`>&-`): the exit code is still of use.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - lasts as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115 - lasts as long as the process
    try:
        try:
            main()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        # Python flushes standard output once more at its end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        report_error(f"The answer can't be written: {error.strerror}.")
        raise SystemExit(1) from error


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    if asked:
        typer.echo(f"eni-tasks {version('eni-tasks')}")
        raise typer.Exit


@main.callback()
def options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options before the command."""


def settings(*, json: JsonFlag = False) -> None:
    """Print the effective settings as they would stand in the environment, secrets masked."""
    with exit_on_error():
        shown = load().masked()
        if json:
            print_json(shown)
        else:
            typer.echo("\n".join(f"{name}={shlex.quote(value) if value else ''}" for name, value in shown.items()))


for command in (
    status.status,
    status.plan,
    admin.maintain,
    admin.publish,
    admin.resync,
    admin.orphans,
    admin.pause,
    admin.resume,
    admin.unlock,
    events,
    doctor,
    settings,
    processes.watcher,
    processes.worker,
    processes.exporter,
    flower,
    sandbox,
):
    main.command()(command)
