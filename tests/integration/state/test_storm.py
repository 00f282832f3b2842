"""Workers that are killed under a flood of changes: in the end every node is served, and no two runs overlapped."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis_servers
from state_under_test import KIND, State

from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.state.queue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = [NodeName(f"node-{i}") for i in range(60)]
WORKERS, STORM_SECONDS, KILL_EVERY_SECONDS = 4, 4.0, 0.25
LEASE_SECONDS, OVERDUE_SECONDS = 0.6, 1.0
DEADLINE_SECONDS = 30.0
RANDOM = random.Random()  # noqa: S311 - no secret


class Storm:
    """Worker processes, a thread that requeues, and the changes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.cluster = state.cluster
        self.queue = WorkQueue(state.connection, lease_seconds=LEASE_SECONDS, overdue_seconds=OVERDUE_SECONDS)
        self.workers = [self._start() for _ in range(WORKERS)]
        self.stopping = threading.Event()
        state.store_nodes(*NODES)
        self.requeuing = threading.Thread(target=self._requeue)
        self.requeuing.start()
        self.kills = 0

    def _start(self) -> subprocess.Popen[bytes]:
        program = Path(__file__).with_name("storm_worker.py")
        args = (self.state.url, self.cluster, str(LEASE_SECONDS), str(OVERDUE_SECONDS))
        return subprocess.Popen([sys.executable, str(program), *args])

    def _requeue(self) -> None:
        while not self.stopping.wait(0.1):
            self.send(self.queue.requeue_overdue(KIND, 50))

    def send(self, names: list[str]) -> None:
        if names:
            self.state.client.lpush(f"{self.cluster}:queue", *names)

    def change(self, name: NodeName) -> None:
        """Change the world, then enqueue the node; now and then the message gets lost."""
        self.state.client.hincrby(f"{self.cluster}:world", name, 1)
        to_send = self.queue.enqueue(KIND, [(name, RANDOM.choice(list(Urgency)))])
        if RANDOM.random() > 0.05:
            self.send(to_send)

    def kill_one(self) -> None:
        victim = RANDOM.randrange(WORKERS)
        self.workers[victim].kill()
        self.workers[victim].wait()
        self.workers[victim] = self._start()
        self.kills += 1

    def end(self) -> None:
        self.stopping.set()
        self.requeuing.join()
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def unserved(self) -> list[str]:
        """Nodes of which no run that came to its end has read the world as it is now.

        A worker may be killed between giving the node back and noting that, so the note doesn't count.
        """
        client = self.state.client
        world = client.hgetall(f"{self.cluster}:world")
        return [
            name.decode()
            for name, value in world.items()
            if max((run.saw for run in self.runs(name.decode()) if run.step == "end"), default=0) < int(value)
        ]

    def runs(self, name: str) -> list[Run]:
        return [Run(line.decode()) for line in self.state.client.lrange(f"{self.cluster}:runs:{name}", 0, -1)]


class Run:
    """One line that a worker left: fence, step, time in µs, the world that it saw."""

    def __init__(self, line: str) -> None:
        fence, self.step, at, saw = line.split()
        self.fence, self.at, self.saw = int(fence), int(at), int(saw)


pytestmark = pytest.mark.parametrize("redis_url", [redis_servers.any_kind()], indirect=True)


@pytest.fixture
def storm(state: State) -> Iterator[Storm]:
    storm = Storm(state)
    yield storm
    storm.end()


def test_no_node_is_lost_and_no_two_runs_overlap(storm: Storm) -> None:
    begun = last_kill = time.monotonic()
    changes = 0
    while time.monotonic() < begun + STORM_SECONDS:
        storm.change(RANDOM.choice(NODES))
        changes += 1
        if time.monotonic() > last_kill + KILL_EVERY_SECONDS:
            storm.kill_one()
            last_kill = time.monotonic()
    while (storm.unserved() or storm.state.left_over()) and time.monotonic() < begun + DEADLINE_SECONDS:
        time.sleep(0.1)

    assert storm.unserved() == []
    assert storm.state.left_over() == []
    assert changes > 300
    assert storm.kills > 5
    for name in NODES:
        assert overlaps(storm.runs(name)) == []


def overlaps(lines: list[Run]) -> list[str]:
    """A run must have ended, or be without its lease, before the next one begins."""
    found = []
    claims = {line.fence: line.at for line in lines if line.step == "claim"}
    ends = {line.fence: line.at for line in lines if line.step == "end"}
    begins = sorted((line for line in lines if line.step == "begin"), key=lambda line: line.fence)
    for run, following in itertools.pairwise(begins):
        # `claim` is the time before it: the lease lives at least until then, whether its worker does or not.
        ended = min(ends.get(run.fence, sys.maxsize), claims[run.fence] + round(LEASE_SECONDS * 1_000_000))
        if following.at < ended:
            found.append(f"{run.fence} until {ended}, {following.fence} from {following.at}")
    return found
