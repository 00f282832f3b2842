"""`eni-tasks events`: mutations of EC2 and actions of people, from the stream that all processes write."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import msgspec
import typer

from eni_tasks.cli.arguments import known_nodes
from eni_tasks.cli.output import JsonFlag, Table, exit_on_error, print_json, print_page
from eni_tasks.cli.processes import services
from eni_tasks.errors import NodeGone
from eni_tasks.model.node import node_name
from eni_tasks.services.sentences import event_details, when
from eni_tasks.state.events import Event

COLUMNS = ("when", "what", "node", "details")
ID_WIDTH = len("subnet=subnet-0123456789abcdef0,")  # what a line of the details should hold
POLL_SECONDS = 0.5
BATCH_COUNT = 1000


def events(
    node: Annotated[
        str | None, typer.Option("--node", "-n", metavar="NODE", help="Only of this node.", autocompletion=known_nodes)
    ] = None,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="How many of the last ones.")] = 50,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new ones; Ctrl-C ends.")] = False,
    json: JsonFlag = False,
) -> None:
    """Show the last mutations of EC2, and what people did.

    With --follow, --json writes one line per event.
    """
    with exit_on_error():
        name = "" if node is None else node_name(node)
        state = services().state
        since = f"{round(state.now() * 1000)}-0"
        known = state.events.latest(name, limit)
        if name and not known and name not in state.nodes.names():
            # A node that was removed is known by its events.
            raise NodeGone(f"node {name}: no CiliumNode of that name is known, and it has no events")
        if not follow:
            print_json([shown(event) for event in known]) if json else print_page(page(known))
            return
        try:
            _write(known, json=json)
            last = known[-1].id if known else since
            while True:
                found = state.events.after(last, BATCH_COUNT)
                _write([event for event in found if name in ("", event.fields.get("node"))], json=json)
                last = found[-1].id if found else last
                if len(found) < BATCH_COUNT:
                    time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            return


def page(found: list[Event], title: str = "") -> Table | str:
    """Events as a table, the oldest first."""
    if not found:
        return "No events."
    return Table(COLUMNS, [row(event) for event in found], title, ID_WIDTH)


def row(event: Event) -> tuple[str, str, str, str]:
    """An event's line in the table."""
    return when(event), event.what, event.fields.get("node", ""), event_details(event)


def shown(event: Event) -> dict[str, str]:
    """An event as JSON."""
    return {"id": event.id, "when": when(event), "what": event.what, **event.fields}


def _write(found: list[Event], *, json: bool) -> None:
    for event in found:
        line = msgspec.json.encode(shown(event)).decode() if json else "\t".join(row(event))
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
