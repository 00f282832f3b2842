"""The command line: `eni-tasks …`. Exit codes: 0 fine, 1 found trouble, 2 wrong use."""

from __future__ import annotations

import shlex

import typer

from eni_tasks.cli import admin, processes, status
from eni_tasks.cli.doctor import doctor
from eni_tasks.cli.events import events
from eni_tasks.cli.flower import flower
from eni_tasks.cli.output import JsonFlag, exit_on_error, print_json
from eni_tasks.cli.sandbox import sandbox
from eni_tasks.settings import load

main = typer.Typer(
    name="eni-tasks",
    help=__doc__,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
