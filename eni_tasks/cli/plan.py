"""A node in a line, and what would be done for it."""

from __future__ import annotations

import typer

from eni_tasks.cli.common import NodeArgument, services
from eni_tasks.cli.output import TROUBLE, JsonFlag, exit_on_error, fail, print_json, print_page
from eni_tasks.errors import InvalidInput
from eni_tasks.model.plan import Action, Assign, SetDeleteOnTermination
from eni_tasks.services.status import NodeStatus
from eni_tasks.tasks.base import node_name

COLUMNS = ("node", "type", "interfaces", "available", "used", "needed", "ready", "reason", "last action")


def row(status: NodeStatus) -> tuple[object, ...]:
    """A node's line in the fleet's table."""
    return (
        status.node,
        status.instance_type,
        status.interfaces,
        status.available,
        status.used,
        status.needed,
        "yes" if status.ready else "no",
        status.reason,
        status.trouble or status.last_action,
    )


def plan(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Show what would be done next for a node, and why. Nothing is done. Exit code 1 if something stands in the way."""
    with exit_on_error():
        name, parts = node_name(node), services()
        try:
            state, decision = parts.status.plan(name)
        except InvalidInput as error:
            fail(str(error))  # the object's fault, not the caller's
        if json:
            print_json(decision)
        else:
            if state.journal is not None:
                print_page("First: continue creating an interface (`eni-tasks status` shows the journal).")
            print_page(*decision.explanation, f"Next: {in_words(decision.action)} ({decision.reason.value}).")
    if decision.blocked:
        raise typer.Exit(TROUBLE)


def in_words(action: Action | None) -> str:
    """What an action does, to what."""
    if action is None:
        return "nothing"
    if isinstance(action, Assign):
        return f"assign {action.count} addresses to {action.interface_id} in {action.subnet_id}"
    if isinstance(action, SetDeleteOnTermination):
        return f"have {action.interface_id} deleted together with its instance"
    groups = ", ".join(action.security_groups)
    return (
        f"create an interface in {action.subnet_id} with {action.secondary_count} addresses and groups {groups}, "
        f"attach it to {action.instance_id} at device {action.device_index}"
    )
