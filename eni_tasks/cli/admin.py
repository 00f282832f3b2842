"""Commands that change something: enqueue work and reads, free a node from a stuck worker, stop all mutations."""

from __future__ import annotations

import getpass
import socket
from typing import Annotated, Any

import typer

from eni_tasks.cli.output import (
    TROUBLE,
    WRONG_USE,
    JsonFlag,
    NodeArgument,
    Table,
    exit_on_error,
    fail,
    print_json,
    print_page,
    print_report,
    working,
)
from eni_tasks.cli.processes import services
from eni_tasks.model.node import node_name
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.services.sentences import duration, sentence


def maintain(node: NodeArgument, *, json: JsonFlag = False) -> None:
    """Have a node's pool brought to size now; ends its back-off."""
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
    with exit_on_error():
        admin = services().admin
        print_report(admin.reread(instance) if instance else admin.reread_all(), json=json)


def orphans(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what a pass would delete.")] = False,
    json: JsonFlag = False,
) -> None:
    """Have interfaces of this cluster that were left behind deleted now, by the same rules as always."""
    with exit_on_error():
        parts = services()
        if not dry_run:
            print_report(parts.admin.collect_orphans(), json=json)
            return
        with working("Listing our interfaces that nothing holds"):
            report = parts.orphans.run(dry_run=True)
        print_json(report) if json else print_page(*_orphans_page(report))
    if "refused" in report:
        raise typer.Exit(TROUBLE)


def _orphans_page(report: dict[str, Any]) -> list[str | Table]:
    if "refused" in report:
        return [sentence(f"Nothing would be deleted: {report['refused']}")]
    rows = [(name, "would be deleted now") for name in report["would_delete"]]
    rows += [(name, f"a pass deletes it in {duration(seconds)}") for name, seconds in report["waiting"].items()]
    rows += [(name, f"kept: {why}") for name, why in report["kept"].items()]
    head = f"{report['found']} interfaces of this cluster are attached to nothing."
    return [head, Table(("interface", "what happens to it"), rows)] if rows else [head]


def pause(
    why: Annotated[str, typer.Option(help="What others should know.")],
    who: Annotated[str, typer.Option(help="Whom to ask.", show_default="you, on this machine")] = "",
    *,
    json: JsonFlag = False,
) -> None:
    """Stop all mutations of EC2; reads, and writes of CiliumNodes, go on."""
    with exit_on_error():
        print_report(services().admin.pause(who or f"{getpass.getuser()}@{socket.gethostname()}", why), json=json)


def resume(*, json: JsonFlag = False) -> None:
    """Let mutations go on after a pause, or once the cause that stopped an EC2 action is removed."""
    with exit_on_error():
        print_report(services().admin.resume(), json=json)


def unlock(
    node: Annotated[str, typer.Argument(metavar="[NODE]", help="Name of a CiliumNode.")] = "",
    *,
    which: Annotated[
        Pass | None, typer.Option("--pass", help="Instead of a node: a pass over the fleet that hangs.")
    ] = None,
    delete_journal: Annotated[
        bool, typer.Option("--delete-journal", help="Also delete a journal entry that can't be decoded.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Take a node, or a pass over the fleet, from a dead or stuck worker now, whatever its lease.

    Harmless if the worker lives: it is refused its next mutation.
    """
    if (which is None) == (not node) or (which is not None and delete_journal):
        fail("Give a NODE, with --delete-journal if you like, or --pass.", WRONG_USE)
    with exit_on_error():
        if which is not None:
            print_report(services().admin.unlock_pass(which), json=json)
            return
        name, admin = node_name(node), services().admin
        report = admin.unlock(name)
        if delete_journal:
            deleted = admin.delete_journal(name)
            report = report | deleted | {"explanation": [*report["explanation"], *deleted["explanation"]]}
        print_report(report, json=json)
    if report["journal"] is False and not delete_journal:
        raise typer.Exit(TROUBLE)


def _enqueue(kind: WorkKind, node: str, *, json: bool) -> None:
    with exit_on_error():
        print_report(services().admin.enqueue(kind, node_name(node)), json=json)
