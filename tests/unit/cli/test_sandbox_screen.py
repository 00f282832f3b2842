"""The sandbox's live table, on terminals of the usual sizes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from eni_tasks.cli.sandbox import screen
from eni_tasks.model.network import NodeName
from eni_tasks.services.status import NodeStatus

ACTION = "created eni-00000000000000084 in subnet-00000000000000005 with 3 addresses, attached at device 1"
HEAD = "7 of 200 pools at size\nFlower: http://127.0.0.1:5555"


def status(number: int) -> NodeStatus:
    ready = number < 7
    action = ACTION if number % 2 else ""
    reason = "at-size" if ready else "deficit"
    name = NodeName(f"node-{number:04}")
    return NodeStatus(node=name, ready=ready, available=11, used=22, needed=33, reason=reason, last_action=action)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 50), (120, 40), (70, 20)])
def test_it_fits_the_terminal_and_cuts_nothing(width: int, height: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=height)
    with console.capture() as capture:
        console.print(screen(HEAD, [status(number) for number in range(200)], console))
    lines = capture.get().splitlines()
    assert lines[:2] == HEAD.splitlines()
    assert lines[2].split() == ["node", "available", "used", "needed", "interfaces", "why"]
    assert len(lines) < height
    assert "…" not in "".join(lines)
    nodes = [line.split()[0] for line in lines if line.startswith("node-")]
    assert nodes == [f"node-{number:04}" for number in range(7, 7 + len(nodes))]
    assert len(nodes) >= (height - 5) // 8
    assert lines[-1] == f"and {200 - len(nodes)} more"
    # A word that is longer than the column goes on below, too.
    assert f"deficit:{ACTION}".replace(" ", "") in "".join(line[48:].replace(" ", "") for line in lines[3:-1])


def test_a_small_fleet_is_shown_whole() -> None:
    console = Console(file=io.StringIO(), width=80, height=24)
    with console.capture() as capture:
        console.print(screen(HEAD, [status(number) for number in range(3)], console))
    lines = capture.get().splitlines()
    assert sum(line.startswith("node-") for line in lines) == 3
    assert "more" not in lines[-1]
