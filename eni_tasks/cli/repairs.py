"""Commands that do something: have nodes worked on or read again, free one from a stuck worker, stop all mutations."""

from __future__ import annotations

import getpass
import socket
from typing import Annotated

import typer

from eni_tasks.cli.common import NodeArgument, services, tell
from eni_tasks.cli.output import JsonFlag, told
from eni_tasks.errors import NodeGone
from eni_tasks.model.plan import Urgency
from eni_tasks.ports.work import WorkKind
from eni_tasks.tasks.base import node_name


def maintain(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Have a node's pool brought to size now, whatever back-off it is in."""
    _enqueue(WorkKind.MAINTAIN, node, json=json)


def publish(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Have a node's CiliumNode written now, if it differs from what is known."""
    _enqueue(WorkKind.PUBLISH, node, json=json)


def resync(
    instance: Annotated[
        str, typer.Option("--instance", "-i", metavar="NODE|INSTANCE", help="Only this one; all without it.")
    ] = "",
    *,
    json: JsonFlag = False,
) -> None:
    """Have everything, or one instance, read again from EC2 now."""
    with told():
        parts = services()
        if instance:
            tell(parts.steering.reread(instance), json=json)
            return
        parts.dispatch.refresh_inventory()
        said = ["A read of everything is enqueued."]
        tell({"enqueued": "eni.refresh_inventory", "explanation": said}, json=json)


def pause(
    why: Annotated[str, typer.Option(help="What others should know.")],
    who: Annotated[str, typer.Option(help="Whom to ask.", show_default="you, on this machine")] = "",
    *,
    json: JsonFlag = False,
) -> None:
    """Stop all mutations of EC2; reads, and writes of CiliumNodes, go on."""
    with told():
        tell(services().steering.pause(who or f"{getpass.getuser()}@{socket.gethostname()}", why), json=json)


def resume(*, json: JsonFlag = False) -> None:
    """Let mutations go on after a pause."""
    with told():
        tell(services().steering.resume(), json=json)


def unlock(
    node: NodeArgument,
    *,
    strike_out: Annotated[
        bool, typer.Option("--strike-out", help="Also strike out a journal entry that can't be read.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Take a node from a dead or stuck worker now, instead of waiting for the end of its lease.

    Harmless if the worker lives: it is refused its next mutation.
    """
    with told():
        name, steering = node_name(node), services().steering
        report = steering.unlock(name)
        if strike_out:
            struck = steering.strike_out(name)
            report = report | struck | {"explanation": [*report["explanation"], *struck["explanation"]]}
        tell(report, json=json)
    if report["journal"] is False and not strike_out:
        raise typer.Exit(1)


def _enqueue(kind: WorkKind, node: str, *, json: bool) -> None:
    with told():
        name, parts = node_name(node), services()
        if parts.store.node(name) is None:
            raise NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
        sent = parts.dispatch.mark(kind, [(name, Urgency.EMPTY)], ends_wait=True)
        said = f"{kind} of {name} is enqueued."
        said += "" if sent else " It was waiting or running already; that run will do it."
        tell({"node": name, "kind": kind, "sent": sent, "explanation": [said]}, json=json)
