"""`eni-tasks sandbox`: the whole system on a laptop, with a live table of the nodes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from eni_tasks.cli.output import JsonFlag, exit_on_error, fail, print_json, table
from eni_tasks.domain.words import counted
from eni_tasks.errors import StateUnavailable
from eni_tasks.sandbox.fleet import Agents
from eni_tasks.sandbox.running import Sandbox
from eni_tasks.services.sentences import sentence
from eni_tasks.services.status import NodeStatus, Status

LOOK_SECONDS = 0.5
SMALL_FLEET = 900  # nodes that fit the subnets for nodes with eight addresses each
COLUMNS = ("node", "available", "used", "needed", "interfaces", "why")
OWNERSHIP_TAG = "io.cilium/cilium-managed"


def sandbox(  # noqa: PLR0913 - the options of the command
    nodes: Annotated[
        int, typer.Option("--nodes", "-n", min=1, max=4000, metavar="COUNT", help="Simulated nodes.")
    ] = 20,
    deadline: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Seconds that --until-ready waits.")
    ] = 120.0,
    latency_ms: Annotated[float, typer.Option(min=0, metavar="MS", help="How long each EC2 call takes.")] = 2.0,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Makes the pods' coming and going repeatable.")] = 1,
    *,
    until_ready: Annotated[
        bool, typer.Option("--until-ready", help="End when all pools are at size (0) or at the deadline (1).")
    ] = False,
    aws_rate_limits: Annotated[
        bool,
        typer.Option("--aws-rate-limits", help="Use AWS's documented rate limits, in EC2 and in the workers."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Run everything here: Redis, EC2 and Kubernetes APIs, watcher, workers, Flower and simulated nodes."""
    console = Console(stderr=True)
    # Ended by an init system or by Ctrl-C: the same way out, which leaves nothing behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with exit_on_error():
        latency = ("--latency-ms", str(latency_ms))
        system = Sandbox(
            lambda line: console.print(line, style="dim", markup=False, soft_wrap=True),
            ec2_arguments=latency,
            aws_rate_limits=aws_rate_limits,
        )
        try:
            with system:
                console.print(f"Launching {counted(nodes, 'node')}…", style="dim")
                system.fleet.add(nodes, home="node_subnets" if nodes <= SMALL_FLEET else "pod_subnets")
                parts = system.services()
                status = parts.status
                if until_ready:
                    _until_ready(system, status, nodes, deadline, console, json=json)
                else:
                    _watch(system, status, seed, console)
        except KeyboardInterrupt:
            console.print("Ended; nothing is left behind.", style="dim")


def _until_ready(  # noqa: PLR0913 - what the command was given
    system: Sandbox, status: Status, nodes: int, deadline: float, console: Console, *, json: bool
) -> None:
    started = time.monotonic()

    def over(views: list[NodeStatus]) -> bool:
        return (len(views) == nodes and all(view.ready for view in views)) or time.monotonic() - started > deadline

    views = _look(system, status, console, over)
    missing = [view for view in views if not view.ready]
    wrong = [
        *system.ec2.violations(),
        *(f"{left.id} is left over" for left in system.ec2.leftovers(**{OWNERSHIP_TAG: "true"})),
    ]
    report: dict[str, Any] = {
        "nodes": nodes,
        "ready": len(views) - len(missing),
        "seconds": round(time.monotonic() - started, 1),
        "missing": missing,
        "unknown": nodes - len(views),
        "violations": wrong,
        "ec2_calls": {action: sum(codes.values()) for action, codes in system.ec2.counts().items()},
        "api_requests": system.kube.record().counts,
    }
    if json:
        print_json(report)
    else:
        for view in missing:
            why = " ".join(filter(None, (*view.explanation, view.trouble)))
            console.print(f"{view.node}: {view.reason}: {sentence(why)}", markup=False, soft_wrap=True)
        for line in wrong:
            console.print(line, style="red", markup=False)
        found = counted(len(wrong), "violation") if wrong else "no violation"
        console.print(f"{report['ready']} of {nodes} pools at size after {report['seconds']} s, {found}.")
        calls = ", ".join(f"{count} {action}" for action, count in report["ec2_calls"].items())
        console.print(f"EC2 calls: {calls}.")
    if len(views) != nodes or missing or wrong:
        raise typer.Exit(1)


def _watch(system: Sandbox, status: Status, seed: int, console: Console) -> None:
    agents = Agents(system.fleet, changes_per_second=1.0, seed=seed)
    agents.start()
    try:
        _look(system, status, console, lambda _: False)
    finally:
        agents.stop()


def _look(
    system: Sandbox, status: Status, console: Console, over: Callable[[list[NodeStatus]], bool]
) -> list[NodeStatus]:
    """Show the fleet until `over` is true; a table on a terminal, a line a second elsewhere."""
    with Live(console=console, auto_refresh=False, transient=not console.is_terminal) as live:
        said_at = 0.0
        while True:
            if dead := system.children.dead():
                fail(f"Ended unexpectedly: {', '.join(dead)}.")
            try:
                views = list(status.nodes())
            except StateUnavailable as error:
                console.print(str(error), style="red", markup=False)
                views = []
            if console.is_terminal:
                live.update(screen(_head(system, views), views, console), refresh=True)
            elif time.monotonic() - said_at >= 1.0:
                said_at = time.monotonic()
                ready = sum(view.ready for view in views)
                console.print(f"{ready} of {len(views)} pools at size; Flower: {system.flower_url}")
            if over(views):
                return views
            time.sleep(LOOK_SECONDS)


def _head(system: Sandbox, views: list[NodeStatus]) -> str:
    ready = sum(view.ready for view in views)
    calls = sum(sum(codes.values()) for codes in system.ec2.counts().values())
    said = f"{ready} of {len(views)} pools at size · {counted(calls, 'EC2 call')} · Ctrl-C ends"
    return f"{said}\nFlower: {system.flower_url}"


def screen(head: str, views: list[NodeStatus], console: Console) -> Group:
    """The head, two lines, and as many nodes as fit the terminal, those that aren't ready first."""
    rows = [_row(view) for view in sorted(views, key=lambda view: (view.ready, view.node))]
    # Besides the nodes: the head, the headings, "and … more", and the line of the cursor.
    shown = _fitting(rows, console, console.height - 5)
    more = [Text(f"and {len(rows) - shown} more")] if shown < len(rows) else []
    return Group(Text(head), table(COLUMNS, rows[:shown], whole=True), *more)


def _fitting(rows: list[tuple[object, ...]], console: Console, height: int) -> int:
    """How many rows fit into so many lines, if their last cells go on below."""
    shown = max(1, min(len(rows), height))
    while shown > 1:
        lines = len(console.render_lines(table(COLUMNS, rows[:shown], whole=True))) - 1
        if lines <= height:
            break
        shown = max(1, shown - max(1, (lines - height) // 4))
    return shown


def _row(status: NodeStatus) -> tuple[object, ...]:
    """A node's line in the live table."""
    more = status.trouble or status.last_action
    why = f"{status.reason}: {more}" if more else status.reason
    return (status.node, status.available, status.used, status.needed, status.interfaces, why)
