"""`eni-tasks status` and `eni-tasks plan`: the state of the fleet or of a node, and what would be done next for it."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from eni_tasks.cli.arguments import NodeArgument, OptionalNode
from eni_tasks.cli.output import (
    TROUBLE,
    JsonFlag,
    exit_on_error,
    fail,
    print_json,
    print_page,
    working,
)
from eni_tasks.cli.processes import services
from eni_tasks.cli.status_pages import fleet_page, node_page
from eni_tasks.errors import InvalidInput
from eni_tasks.model.node import node_name
from eni_tasks.services.sentences import action_text, work_lines
from eni_tasks.tasks.registry import QUEUES


def status(
    node: OptionalNode = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="List all nodes, not only those that are not at size.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Show the state of the fleet, or of one NODE.

    Exit code 1 if a pool is not at size, an EC2 action is stopped, reads of EC2 fail, or no node is known.
    """
    with exit_on_error():
        name = None if node is None else node_name(node)
        answers = services().status
        if name is not None:
            one = answers.node(name)
            print_json(one) if json else print_page(*node_page(one))
            trouble = not one.status.ready
        else:
            with working("Reading the nodes") as progress:
                fleet = answers.fleet(QUEUES, lambda count: progress(f"{count} so far"))
            print_json(fleet) if json else print_page(*fleet_page(fleet, everything=everything))
            trouble = fleet.trouble
    if trouble:
        raise typer.Exit(TROUBLE)


def plan(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Show what would be done next for a node, why, and what stands in the way (exit code 1). Nothing is done."""
    with exit_on_error():
        name, answers = node_name(node), services().status
        try:
            found = answers.plan(name)
        except InvalidInput as error:
            fail(str(error))  # the object's fault, not the caller's
        if json:
            more = {"creating": found.creating, "work": found.work, "obstacles": found.obstacles}
            print_json(msgspec.to_builtins(found.plan) | msgspec.to_builtins(more))
        else:
            decision = found.plan
            if found.creating:
                print_page("First: continue creating an interface (`eni-tasks status` shows the journal).")
            print_page(*decision.explanation, *decision.troubles)
            print_page(f"Next: {action_text(decision.action)} ({decision.reason.value}).")
            print_page(*work_lines(found.work, found.now), *(f"In the way: {each}" for each in found.obstacles))
    if found.trouble:
        raise typer.Exit(TROUBLE)
