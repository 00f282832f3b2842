"""`eni-tasks status` and `eni-tasks plan`: the state of the fleet or of a node, and what would be done next for it."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from eni_tasks.cli.output import (
    TROUBLE,
    JsonFlag,
    NodeArgument,
    exit_on_error,
    fail,
    print_json,
    print_page,
    working,
)
from eni_tasks.cli.processes import services
from eni_tasks.cli.status_pages import fleet_page, node_page, work_lines
from eni_tasks.errors import InvalidInput
from eni_tasks.model.node import node_name
from eni_tasks.model.plan import (
    Action,
    Assign,
    AssignIpv6Prefix,
    AssociateAddress,
    SetDeleteOnTermination,
    Unassign,
)
from eni_tasks.tasks.registry import QUEUES


def status(
    node: Annotated[str, typer.Argument(metavar="[NODE]", help="One node; the fleet without it.")] = "",
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="List all nodes, not only those that are not at size.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Show the state of the fleet, or of one node. Exit code 1 if a pool is not at size or an EC2 action is stopped."""
    with exit_on_error():
        name = node_name(node) if node else None
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


def given_text(count: int, prefix_count: int) -> str:
    """What an interface is given: single addresses, or /28 prefixes."""
    return f"{prefix_count} /28 prefixes" if prefix_count else f"{count} addresses"


def action_text(action: Action | None) -> str:  # noqa: PLR0911 - one for each action
    """What an action does, to what."""
    if action is None:
        return "nothing"
    if isinstance(action, Assign):
        what = given_text(action.count, action.prefix_count)
        return f"assign {what} to {action.interface_id} in {action.subnet_id}"
    if isinstance(action, SetDeleteOnTermination):
        return f"have {action.interface_id} deleted together with its instance"
    if isinstance(action, Unassign):
        names = ", ".join((*action.prefixes, *action.addresses))
        return f"unassign {names} from {action.interface_id} in {action.subnet_id}"
    if isinstance(action, AssignIpv6Prefix):
        return f"assign an IPv6 prefix to {action.interface_id}"
    if isinstance(action, AssociateAddress):
        return f"associate an Elastic IP with {action.primary_address} of {action.interface_id}"
    groups = ", ".join(action.security_groups)
    what = given_text(action.secondary_count, action.prefix_count)
    prefix = ", an IPv6 prefix" if action.ipv6_prefix else ""
    return (
        f"create an interface in {action.subnet_id} with {what}{prefix} and groups "
        f"{groups}, attach it to {action.instance_id} at device {action.device_index}"
    )
