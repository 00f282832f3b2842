"""A node in a line, and what would be done for it."""

from __future__ import annotations

import typer

from eni_tasks.cli.common import NodeArgument, services
from eni_tasks.cli.output import TROUBLE, JsonFlag, fail, print_json, print_page, told
from eni_tasks.errors import InvalidInput
from eni_tasks.model.plan import Action, Assign, MarkInterface
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


def plan(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Show what would be done next for a node, and why. Nothing is done. Exit code 1 if something stands in the way."""
    with told():
        name, parts = node_name(node), services()
        try:
            gathered, decision = Inspect(parts.store, parts.policy).plan(name)
        except InvalidInput as error:
            fail(str(error))  # the object's fault, not the caller's
        if json:
            print_json(decision)
        else:
            if gathered.journal is not None:
                print_page("First: go on with the interface in the making (`eni-tasks status` shows its journal).")
            print_page(*decision.explanation, f"Next: {in_words(decision.action)} ({decision.reason.value}).")
    if decision.blocked:
        raise typer.Exit(TROUBLE)


def in_words(action: Action | None) -> str:
    """What an action does, to what."""
    if action is None:
        return "nothing"
    if isinstance(action, Assign):
        return f"assign {action.count} addresses to {action.interface_id} in {action.subnet_id}"
    if isinstance(action, MarkInterface):
        return f"have {action.interface_id} deleted together with its instance"
    groups = ", ".join(action.security_groups)
    return (
        f"create an interface in {action.subnet_id} with {action.secondary_count} addresses and groups {groups}, "
        f"attach it to {action.instance_id} at device {action.device_index}"
    )
