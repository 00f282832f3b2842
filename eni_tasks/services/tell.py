"""Telling people of nodes by Kubernetes Events, beside the work and never in its way.

`tell` only decides and puts into a short queue; one thread writes. What is repeated, comes too fast or finds the
queue full is left out, and what can't be written is lost: the state itself is in the object and in `eni-tasks status`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable

from eni_tasks.errors import EniTasksError
from eni_tasks.model.node_event import NodeEvent
from eni_tasks.observability.counters import Counters
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import EventWriter

REPEAT_SECONDS = 600.0  # the same is told again after this long; the API server forgets it after an hour
NODE_BURST, NODE_SECONDS = 10, 60.0  # of one node: at once, and for each more
PROCESS_BURST, PROCESS_SECONDS = 50, 0.5  # of one process
QUEUE_LENGTH = 100
NODES_COUNT = 5000  # about which this process remembers what it told
LOG_SECONDS = 600.0  # between two warnings that Events can't be written


class Bucket:
    """A token bucket.

    Args:
        size: tokens in a full one.
        seconds: for each token that comes back.
        now: the monotonic clock.
    """

    def __init__(self, size: int, seconds: float, now: float) -> None:
        self._size, self._seconds = size, seconds
        self._tokens, self._at = float(size), now

    def take(self, now: float) -> bool:
        """Take a token; whether there was one."""
        self._tokens = min(self._size, self._tokens + (now - self._at) / self._seconds)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class _Told:
    """What was told of one node: when, by reason and message; and how much more may be."""

    def __init__(self, now: float) -> None:
        self.bucket = Bucket(NODE_BURST, NODE_SECONDS, now)
        self.last: dict[str, tuple[str, float]] = {}  # one entry per reason, of which there are a few dozen


class Teller:
    """Tells; threads share it.

    Args:
        writer: writes one Event.
        counters: what the process counts into.
    """

    def __init__(self, writer: EventWriter, counters: Counters) -> None:
        self._writer = writer
        self._counters = counters
        self._lock = threading.Lock()
        self._told: OrderedDict[str, _Told] = OrderedDict()  # by uid, the one told last at the end
        self._bucket = Bucket(PROCESS_BURST, PROCESS_SECONDS, time.monotonic())
        self._queue: queue.Queue[NodeEvent] = queue.Queue(QUEUE_LENGTH)
        self._thread: threading.Thread | None = None
        self._logged_at = -LOG_SECONDS

    def tell(self, events: Iterable[NodeEvent]) -> None:
        """Tell what was not just told, as far as the limits allow; returns at once and raises nothing."""
        for event in events:
            with self._lock:
                if not self._is_new(event, time.monotonic()):
                    continue
                accepted = self._accept(event, time.monotonic())
            if not accepted:
                self._count("left_out")

    def _is_new(self, event: NodeEvent, now: float) -> bool:
        told = self._told.get(event.uid)
        message, at = told.last.get(event.reason, ("", -REPEAT_SECONDS)) if told else ("", -REPEAT_SECONDS)
        return message != event.message or now - at >= REPEAT_SECONDS

    def _accept(self, event: NodeEvent, now: float) -> bool:
        told = self._told.setdefault(event.uid, _Told(now))
        self._told.move_to_end(event.uid)
        if len(self._told) > NODES_COUNT:
            self._told.popitem(last=False)
        if not (told.bucket.take(now) and self._bucket.take(now)):
            return False
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            return False
        told.last[event.reason] = (event.message, now)
        if self._thread is None:
            # A daemon: a process that ends does not wait for the API server to take its last Events.
            self._thread = threading.Thread(target=self._write_all, name="events", daemon=True)
            self._thread.start()
        return True

    def _write_all(self) -> None:
        while True:
            event = self._queue.get()
            try:
                self._writer.write(event)
            except EniTasksError as error:
                self._count("failed")
                if time.monotonic() - self._logged_at >= LOG_SECONDS:
                    self._logged_at = time.monotonic()
                    logger().warning("event_not_written", node=event.node, reason=event.reason, error=str(error))
            except Exception:  # noqa: BLE001 - logged with its trace
                # An error of this system must not end the thread: nothing would be told any more.
                self._count("failed")
                logger().exception("event_not_written", node=event.node, reason=event.reason)
            else:
                self._count("written")

    def _count(self, outcome: str) -> None:
        self._counters.count("kube_events_total", {"outcome": outcome})
