"""Commands that tell how nodes stand, and what would be done for them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from eni_tasks.cli.common import NodeArgument, services
from eni_tasks.cli.output import JsonFlag, print_json, print_table, told
from eni_tasks.services.inspect import Inspect, NodeView
from eni_tasks.tasks.base import node_name

COLUMNS = ("node", "type", "interfaces", "available", "used", "needed", "ready", "reason", "last action")


def row(view: NodeView) -> tuple[object, ...]:
    """A node's line in the fleet's table."""
    return (
        view.node,
        view.instance_type,
        view.interfaces,
        view.available,
        view.used,
        view.needed,
        "yes" if view.ready else "no",
        view.reason,
        view.trouble or view.last_action,
    )


def status(
    node: Annotated[str, typer.Argument(help="One node; all without it.")] = "", *, json: JsonFlag = False
) -> None:
    """Show how the fleet, or one node, stands. Exit code 1 if a pool is not at size."""
    with told():
        inspect = _inspect()
        if not node:
            views = list(inspect.fleet())
            if json:
                print_json(views)
            else:
                print_table(COLUMNS, [row(view) for view in views])
        else:
            views = [inspect.node(node_name(node))]
            if json:
                print_json(views[0])
            else:
                print_table(COLUMNS, [row(views[0])])
                typer.echo("\n".join(views[0].explanation))
    if not all(view.ready for view in views):
        raise typer.Exit(1)


def plan(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Show what would be done next for a node, and why. Nothing is done."""
    with told():
        _, decision = _inspect().plan(node_name(node))
        if json:
            print_json(decision)
            return
        typer.echo("\n".join(decision.explanation))
        action = "nothing" if decision.action is None else _words(msgspec.to_builtins(decision.action))
        typer.echo(f"Next action: {action} ({decision.reason.value})")


def _inspect() -> Inspect:
    parts = services()
    return Inspect(parts.store, parts.policy)


def _words(action: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in action.items() if value not in ("", None, {}, []))
