"""What the commands share: the services, the argument that names a node, and printing a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from eni_tasks.bootstrap import Services
from eni_tasks.cli.output import print_json
from eni_tasks.cli.processes import start
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Name of a CiliumNode.")]


def services() -> Services:
    """The services, for one command."""
    settings = start()
    return Services(settings, CeleryMessages(make_app(settings)))


def print_report(report: Mapping[str, Any], *, json: bool) -> None:
    """Print a report: its sentences, or all of it as JSON."""
    if json:
        print_json(report)
    else:
        typer.echo("\n".join(report["explanation"]))
