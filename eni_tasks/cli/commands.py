"""The command line: `eni-tasks …`. Exit codes: 0 fine, 1 found trouble, 2 wrong use."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from eni_tasks.cli import admin, flower, plan, processes
from eni_tasks.cli.doctor import doctor
from eni_tasks.cli.events import events
from eni_tasks.cli.exporter import exporter
from eni_tasks.cli.output import JsonFlag, exit_on_error, fail, print_json
from eni_tasks.cli.sandbox import sandbox
from eni_tasks.cli.status import status
from eni_tasks.settings import load
from eni_tasks.tasks.registry import QUEUES

main = typer.Typer(
    name="eni-tasks",
    help=__doc__,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

main.command()(status)
main.command()(plan.plan)
main.command()(admin.maintain)
main.command()(admin.publish)
main.command()(admin.resync)
main.command()(admin.orphans)
main.command()(admin.pause)
main.command()(admin.resume)
main.command()(admin.unlock)
main.command()(events)
main.command()(doctor)
main.command()(exporter)
main.command()(flower.flower)
main.command()(sandbox)


@main.command()
def watcher() -> None:
    """Run a watcher: sees changes of CiliumNodes, and ticks. Any number may run."""
    with exit_on_error():
        processes.run_watcher()


@main.command()
def worker(
    queue: Annotated[list[str], typer.Option("--queue", "-q", help=f"One of {', '.join(QUEUES)}; may be repeated.")],
    threads: Annotated[int, typer.Option(min=1, max=64, help="Tasks at once.")] = processes.THREADS,
) -> None:
    """Run a worker for one or more queues."""
    if unknown := sorted(set(queue) - set(QUEUES)):
        fail(f"No such queue: {', '.join(unknown)}; there are {', '.join(QUEUES)}.", 2)
    with exit_on_error():
        processes.run_worker(queue, threads=threads)


@main.command()
def settings(*, json: JsonFlag = False) -> None:
    """Print the effective settings as they would stand in the environment, secrets masked."""
    with exit_on_error():
        shown = load().masked()
        if json:
            print_json(shown)
        else:
            typer.echo("\n".join(f"{name}={shlex.quote(value) if value else ''}" for name, value in shown.items()))
