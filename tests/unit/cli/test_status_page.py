"""What `status` says: of a fleet in trouble, in a pipe and on a narrow terminal."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import pytest
from statuses import ACTION, NOW, ONE, WAITS, fleet, summary

from eni_tasks.cli import output
from eni_tasks.cli.output import Table, print_page
from eni_tasks.cli.status_pages import fleet_page, node_page
from eni_tasks.model.work import Pause
from eni_tasks.services.sentences import duration, work_text
from eni_tasks.state.summary import BreakerSummary, WorkState, WorkStatus

if TYPE_CHECKING:
    from collections.abc import Callable


def piped(capsys: pytest.CaptureFixture[str], page: list[str | Table]) -> str:
    print_page(*page)
    return capsys.readouterr().out


def test_the_fleet_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    lines = piped(capsys, fleet_page(fleet(), everything=False)).splitlines()
    assert lines[0] == "3 nodes: 1 at size, 1 in deficit; 1 at capacity, 1 waiting."
    assert lines[1] == "Facts: subnets read 12 s ago, every instance within 2 min."
    assert lines[2] == "Interfaces being created: 1, of full."
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines if "\t" in line}
    assert rows[WAITS.node] == ["8", "7", "7", "waits 34 s", f"deficit: {WAITS.trouble}"]
    assert rows["full"] == ["0", "0", "3", "idle", "at-capacity"]
    assert "well" not in rows
    assert rows[ACTION] == ["13", "100", "2.5", "3 s ago", ""]
    assert rows["Other"][0] == "no limit"
    assert rows["tight"] == ["b", "2", "5", "3", "60 s", "90 s"]
    assert "Work (messages that wait: ec2 3, apiserver 0, resync 0)" in lines
    assert lines.index("Subnets") < [line.split("\t")[0] for line in lines].index("tight")


def test_all_nodes_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\nwell\t" in piped(capsys, fleet_page(fleet(), everything=True))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pause": Pause(who="Ada", why="a move", since=NOW - 300)}, "PAUSED for 5 min by Ada: a move. `eni-tasks"),
        ({"pause": Pause(who="Ada", why="It burns.", since=NOW - 300)}, "by Ada: It burns. `eni-tasks resume`"),
        ({"generation": None}, "Redis is empty, and no watcher has noticed yet"),
        ({"infrastructure_at": None}, "EC2 was not read yet"),
        ({"orphans_count": 2}, "Interfaces left behind: 2"),
        (
            {"breakers": {ACTION: BreakerSummary(until=NOW + 45, why="UnauthorizedOperation")}},
            f"{ACTION} is stopped for all workers: UnauthorizedOperation. It is probed in 45 s; `eni-tasks resume`",
        ),
        (
            {"breakers": {ACTION: BreakerSummary(until=NOW + 45, why="You are not authorized.")}},
            f"{ACTION} is stopped for all workers: You are not authorized. It is probed in 45 s;",
        ),
        ({"breakers": {ACTION: BreakerSummary(until=NOW - 1, why="x")}}, "It is probed by the next caller;"),
    ],
    ids=["paused", "paused-with-a-full-stop", "emptied", "unread", "orphans", "broken", "a-full-stop", "due"],
)
def test_what_concerns_all_nodes_comes_first(
    capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: str
) -> None:
    shown = piped(capsys, fleet_page(fleet(summary=summary(**changes)), everything=False))
    assert words in shown.partition("why not at size")[0]


def test_no_nodes_is_a_hint_at_the_watcher(capsys: pytest.CaptureFixture[str]) -> None:
    none = fleet(nodes=(), total_count=0, ready_count=0, reasons={}, oldest_read_at=None)
    assert "is a watcher running" in piped(capsys, fleet_page(none, everything=False)).splitlines()[0]


@pytest.mark.parametrize(
    ("ready", "breakers", "trouble"),
    [(3, {}, False), (2, {}, True), (3, {ACTION: BreakerSummary(until=NOW, why="")}, True)],
    ids=["well", "not-at-size", "broken"],
)
def test_trouble_is_a_pool_or_a_stopped_action(
    ready: int, breakers: dict[str, BreakerSummary], *, trouble: bool
) -> None:
    assert fleet(ready_count=ready, summary=summary(breakers=breakers)).trouble is trouble


# -- one node ----------------------------------------------------------------------------------
def test_one_node_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert piped(capsys, node_page(ONE)).splitlines() == [
        "n (i-1, m5.large): deficit.",
        "n holds 8.",
        "4 more are needed.",
        "Addresses: 8 on its interfaces, 6 in its object, 2 used, 4 needed, 0 in excess.",
        "maintain: waits for 34 s; `eni-tasks maintain` ends the wait.",
        "Trouble: EC2 said no (3 failed runs in a row).",
        "Last action: assigned 2.",
        "Facts: read 50 s ago.",
        "They count as unknown: a mutation is under way.",
        "The journal is at step created of making eni-9; the next run goes on from there.",
        "Interfaces",
        "interface\tdevice\tsubnet\tstatus\tprimary\taddresses\tused\tlist",
        "eni-1\t0\tsubnet-1\tattached\t10.0.0.1\t18\t1\t10.0.0.16/28 10.0.0.2 10.0.0.3",
        "Last events",
        "when\twhat\tnode\tdetails",
        "1970-01-12T13:46:40Z\tUnlock\tn\tkinds=maintain",
    ]


# -- forms -------------------------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [200, 80, 40])
@pytest.mark.parametrize(
    "page", [lambda: fleet_page(fleet(), everything=True), lambda: node_page(ONE)], ids=["fleet", "node"]
)
def test_nothing_is_cut_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, page: Callable[[], list[str | Table]], columns: int
) -> None:
    screen = Terminal()
    monkeypatch.setattr(output.sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    parts = page()
    print_page(*parts)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert "…" not in shown
    assert all(len(line.rstrip()) <= columns for line in shown.splitlines())
    # Folded and wrapped text is whole again without its blanks.
    run = re.sub(r"\s", "", shown)
    for part in parts:
        cells = [part] if isinstance(part, str) else [str(cell) for row in part.rows for cell in row]
        assert all(cell.replace(" ", "") in run for cell in cells)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_lengths_of_time(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (WorkState.WAITING, "waits 5 s"),
        (WorkState.RUNNING, "running"),
        (WorkState.QUEUED, "queued"),
        (WorkState.OVERDUE, "overdue"),
    ],
)
def test_work_in_a_word(state: WorkState, words: str) -> None:
    assert work_text(WorkStatus(state=state, until=NOW + 5), NOW) == words
