"""Commands about nodes: how they stand, what would be done, and doing it now."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from eni_tasks.bootstrap import Services
from eni_tasks.cli.output import JsonFlag, print_json, print_table, told
from eni_tasks.cli.processes import start
from eni_tasks.errors import NodeGone
from eni_tasks.model.plan import Urgency
from eni_tasks.ports.work import WorkKind
from eni_tasks.services.inspect import Inspect, NodeView
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages
from eni_tasks.tasks.registry import node_name

COLUMNS = ("node", "type", "interfaces", "available", "used", "needed", "ready", "reason", "last action")

Node = Annotated[str, typer.Argument(help="Name of a CiliumNode.")]


def services() -> Services:
    """The use cases, for one command."""
    settings = start()
    return Services(settings, CeleryMessages(make_app(settings)))


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


def plan(node: Node, *, json: JsonFlag = False) -> None:
    """Show what would be done next for a node, and why. Nothing is done."""
    with told():
        _, decision = _inspect().plan(node_name(node))
        if json:
            print_json(decision)
            return
        typer.echo("\n".join(decision.explanation))
        action = "nothing" if decision.action is None else _words(msgspec.to_builtins(decision.action))
        typer.echo(f"Next action: {action} ({decision.reason.value})")


def maintain(node: Node, *, json: JsonFlag = False) -> None:
    """Have a node's pool brought to size now, whatever back-off it is in."""
    _enqueue(WorkKind.MAINTAIN, node, json=json)


def publish(node: Node, *, json: JsonFlag = False) -> None:
    """Have a node's CiliumNode written now, if it differs from what is known."""
    _enqueue(WorkKind.PUBLISH, node, json=json)


def resync(*, json: JsonFlag = False) -> None:
    """Have everything read again from EC2 now."""
    with told():
        services().dispatch.refresh_inventory()
        _say({"enqueued": "eni.refresh_inventory"}, "A read of everything is enqueued.", json=json)


def _inspect() -> Inspect:
    parts = services()
    return Inspect(parts.store, parts.policy)


def _enqueue(kind: WorkKind, node: str, *, json: bool) -> None:
    with told():
        name = node_name(node)
        parts = services()
        if parts.store.node(name) is None:
            raise NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
        sent = parts.dispatch.mark(kind, [(name, Urgency.EMPTY)], ends_wait=True)
        folded = "" if sent else " It was waiting or running already; that run will do it."
        _say({"node": name, "kind": kind, "sent": sent}, f"{kind} of {name} is enqueued.{folded}", json=json)


def _say(value: dict[str, Any], sentence: str, *, json: bool) -> None:
    if json:
        print_json(value)
    else:
        typer.echo(sentence)


def _words(action: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in action.items() if value not in ("", None, {}, []))
