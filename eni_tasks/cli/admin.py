"""Commands that change something: enqueue work and reads, free a node from a stuck worker, stop all mutations."""

from __future__ import annotations

import getpass
import socket
from typing import Annotated, Any

import typer

from eni_tasks.cli.arguments import NodeArgument, OptionalNode, known_nodes
from eni_tasks.cli.output import (
    TROUBLE,
    WRONG_USE,
    JsonFlag,
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
        str | None,
        typer.Option(
            "--instance",
            "-i",
            metavar="NODE|INSTANCE",
            help="Only this instance, by its id or its node; all without it.",
            autocompletion=known_nodes,
        ),
    ] = None,
    *,
    json: JsonFlag = False,
) -> None:
    """Have all instances, or one, read again from EC2 now."""
    if instance == "":
        fail("--instance is empty: give a node or an instance, or leave the option out to have all read.", WRONG_USE)
    with exit_on_error():
        admin = services().admin
        print_report(admin.reread_all() if instance is None else admin.reread(instance), json=json)


def orphans(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what a pass would delete.")] = False,
    json: JsonFlag = False,
) -> None:
    """Have interfaces that were left behind deleted now, by the same rules as the periodic pass."""
    with exit_on_error():
        parts = services()
        if not dry_run:
            print_report(parts.admin.collect_orphans(), json=json)
            return
        with working("Listing unattached interfaces"):
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
    head = f"Unattached interfaces of this cluster: {report['found'] or 'none'}."
    return [head, Table(("interface", "what happens to it"), rows)] if rows else [head]


def pause(
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason, for others.")],
    who: Annotated[str, typer.Option(metavar="TEXT", help="Whom to ask.", show_default="you, on this machine")] = "",
    *,
    json: JsonFlag = False,
) -> None:
    """Stop all mutations of EC2; reads, and writes of CiliumNodes, continue."""
    with exit_on_error():
        print_report(services().admin.pause(who or f"{getpass.getuser()}@{socket.gethostname()}", why), json=json)


def resume(*, json: JsonFlag = False) -> None:
    """End a pause, and try EC2 actions again whose cause of refusal is removed."""
    with exit_on_error():
        print_report(services().admin.resume(), json=json)


def unlock(
    node: OptionalNode = None,
    *,
    which: Annotated[
        str | None,
        typer.Option(
            "--pass",
            metavar="PASS",
            help=f"Instead of a node: a pass over the fleet that hangs; {', '.join(Pass)}.",
            autocompletion=lambda: list(Pass),
        ),
    ] = None,
    delete_journal: Annotated[
        bool, typer.Option("--delete-journal", help="Also delete a journal entry that can't be decoded.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Take a node, or a pass over the fleet, from a dead or stuck worker now, whatever its lease.

    Harmless if the worker lives: it is refused its next mutation.
    """
    if (which is None) == (node is None) or (which is not None and delete_journal):
        fail("Give a NODE, with or without --delete-journal, or a --pass.", WRONG_USE)
    if which is not None and which not in set(Pass):
        fail(f"No such pass: {which}; there are {', '.join(Pass)}.", WRONG_USE)
    with exit_on_error():
        if which is not None:
            print_report(services().admin.unlock_pass(Pass(which)), json=json)
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
