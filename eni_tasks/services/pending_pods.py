"""How many pods wait on each node, from a watch on them: nodes in deficit get an address for each at once.

The count alone makes no work: it matters to a run that finds the node in deficit, and the object shows that. So any
number of pods may come and go, and what is written to Redis is at most one small hash a second. Every watcher writes
all counts; while none does, they expire.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from eni_tasks.model.network import NodeName
from eni_tasks.model.pod import Pod
from eni_tasks.ports.kube import Page
from eni_tasks.state import State

LIFETIME_SECONDS = 30.0  # of the counts in Redis
AGAIN_SECONDS = 10.0  # they are written this often although nothing changed
MOST_PODS = 200_000  # kept; of a cluster where more wait than that, the rest is not counted


class PendingPods:
    """Takes in what the watch on pods sees; one thread may do so while another writes the counts.

    Args:
        state: the shared state.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._nodes: dict[str, str] = {}  # uid of a waiting pod → its node
        self._changed = True
        self._written_at = 0.0

    def take_list(self, pages: Iterable[Page[Pod]]) -> tuple[int, str]:
        """Take in a complete list in place of what was known; returns the number of pods, and the list's version."""
        nodes: dict[str, str] = {}
        version = ""
        for page in pages:
            version = page.resource_version
            nodes |= {pod.metadata.uid: pod.waits_on for pod in page.objects if pod.waits_on}
        with self._lock:
            self._nodes = dict(list(nodes.items())[:MOST_PODS])
            self._changed = True
        return len(nodes), version

    def changed(self, objects: Sequence[Pod]) -> None:
        """Take in pods as they are now."""
        with self._lock:
            for pod in objects:
                known = self._nodes.pop(pod.metadata.uid, "")
                if pod.waits_on and len(self._nodes) < MOST_PODS:
                    self._nodes[pod.metadata.uid] = pod.waits_on
                self._changed |= known != pod.waits_on

    def removed(self, name: str, uid: str) -> None:
        """Take in that a pod does not wait any more, or is gone."""
        del name
        with self._lock:
            self._changed |= bool(self._nodes.pop(uid, ""))

    def write(self) -> None:
        """Write the counts if they changed, or before they expire.

        Raises:
            StateUnavailable: Redis did not answer; the next call tries again.
        """
        with self._lock:
            if not self._changed and time.monotonic() - self._written_at < AGAIN_SECONDS:
                return
            counts = Counter(self._nodes.values())
            self._changed = False
        try:
            self._state.nodes.put_pending_pods(
                {NodeName(name): count for name, count in counts.items()}, lifetime_seconds=LIFETIME_SECONDS
            )
        except BaseException:
            self._changed = True
            raise
        self._written_at = time.monotonic()
