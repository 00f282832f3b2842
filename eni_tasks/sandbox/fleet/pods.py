"""Pods that come and go on random nodes."""

from __future__ import annotations

import random
import threading

from eni_tasks.sandbox.fleet.nodes import Fleet


class Agents:
    """Lets pods come and go, in a thread if started.

    Args:
        fleet: the nodes.
        changes_per_second: how many nodes change their usage in a second.
        seed: makes a run repeatable.
    """

    def __init__(self, fleet: Fleet, changes_per_second: float, seed: int) -> None:
        self._fleet = fleet
        self._pause_seconds = 1.0 / changes_per_second
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agents", daemon=True)

    def start(self) -> None:
        """Let pods come and go."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the pods as they are."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_seconds):
            self.change_one()

    def change_one(self) -> None:
        """Let a few pods come to, or go from, one node.

        Raises:
            NodeGone: the node was deleted.
        """
        obj = self._fleet.get(self._random.choice(self._fleet.names))
        used = len(self._fleet.agent(obj).used)
        self._fleet.use(obj, used + self._random.randint(-3, 4))
