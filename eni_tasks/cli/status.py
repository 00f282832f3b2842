"""`eni-tasks status`: how the fleet, or one node, stands."""

from __future__ import annotations

from typing import Annotated

import typer

from eni_tasks.cli.common import services
from eni_tasks.cli.fleet_page import fleet_page
from eni_tasks.cli.node_page import node_page
from eni_tasks.cli.output import TROUBLE, JsonFlag, exit_on_error, print_json, print_page, working
from eni_tasks.tasks.base import node_name
from eni_tasks.tasks.registry import QUEUES


def status(
    node: Annotated[str, typer.Argument(metavar="[NODE]", help="One node; the fleet without it.")] = "",
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="List all nodes, not only those that are not at size.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Show how the fleet, or one node, stands. Exit code 1 if a pool is not at size or an EC2 action is stopped."""
    with exit_on_error():
        name = node_name(node) if node else None
        answers = services().status
        if name is not None:
            one = answers.node(name)
            print_json(one) if json else print_page(*node_page(one))
            trouble = not one.status.ready
        else:
            with working("Looking at the nodes") as progress:
                fleet = answers.fleet(QUEUES, lambda count: progress(f"{count} so far"))
            print_json(fleet) if json else print_page(*fleet_page(fleet, everything=everything))
            trouble = fleet.trouble
    if trouble:
        raise typer.Exit(TROUBLE)
