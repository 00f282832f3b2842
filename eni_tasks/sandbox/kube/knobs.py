"""The settings that tests and people change in the Kubernetes sandbox, scripted faults, and the record of requests.

`api` and `watches` read them.
"""

from __future__ import annotations

import threading
from collections import Counter, deque

import msgspec

_WRITES = frozenset({"create", "update", "patch", "delete"})
_LOG_LIMIT_COUNT = 100_000


class Knobs(msgspec.Struct, forbid_unknown_fields=True):
    """Lasting behaviour; the defaults are a healthy server.

    `token` is the bearer token that every request must carry ("" accepts all requests), `denied` the rights
    that are refused, as "verb resource" ("patch ciliumnodes/status"). `gone_as_http` answers a watch from
    a forgotten version with HTTP 410 (as servers without a watch cache do) instead of an ERROR event.
    """

    latency_seconds: float = 0.0
    history_limit_count: int = 20_000  # how many changes a watch may lie behind
    bookmark_seconds: float = 60.0
    watch_seconds: float = 3600.0  # the longest watch when the client names no timeoutSeconds
    gone_as_http: bool = False
    token: str = ""
    denied: list[str] = []


class Fault(msgspec.Struct):
    """One scripted refusal.

    `verb` is get, list, watch, create, update, patch, delete, "write" (any of the last four) or "*";
    `name` and `subresource` narrow it down. After letting `skip_count` matching requests pass, the next
    `times_count` are answered with `code`, or not at all when `code` is 0 (the connection drops).
    `after_effect` does the work first.
    """

    verb: str = "write"
    code: int = 500
    name: str | None = None
    subresource: str | None = None
    skip_count: int = 0
    times_count: int = 1
    after_effect: bool = False
    retry_after_seconds: int | None = None

    def matches(self, verb: str, name: str, subresource: str) -> bool:
        """Returns whether a request is one that this fault counts."""
        return (
            (self.verb in ("*", verb) or (self.verb == "write" and verb in _WRITES))
            and self.name in (None, name)
            and self.subresource in (None, subresource)
        )


class Entry(msgspec.Struct, frozen=True):
    """One answered request; `code` is 0 when the connection was dropped, a watch is entered at its start."""

    verb: str
    name: str
    subresource: str
    code: int


class Faults:
    """The scripted faults that are still to come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []

    def add(self, faults: list[Fault]) -> None:
        """Script more faults, behind the present ones."""
        with self._lock:
            self._waiting += faults

    def clear(self) -> None:
        """Forget all scripted faults."""
        with self._lock:
            self._waiting.clear()

    def take(self, verb: str, name: str, subresource: str) -> Fault | None:
        """Count a request; returns the fault that applies to it, if any."""
        if not self._waiting:
            return None
        with self._lock:
            for fault in self._waiting:
                if not fault.matches(verb, name, subresource):
                    continue
                if fault.skip_count > 0:
                    fault.skip_count -= 1
                    continue
                fault.times_count -= 1
                if fault.times_count <= 0:
                    self._waiting.remove(fault)
                return fault
        return None


class Requests:
    """The record of requests: counts since the last reset, and the latest ones in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._log: deque[Entry] = deque(maxlen=_LOG_LIMIT_COUNT)

    def record(self, entry: Entry) -> None:
        """Add an answered request."""
        with self._lock:
            self._counts[f"{entry.verb}/{entry.subresource}" if entry.subresource else entry.verb] += 1
            self._log.append(entry)

    def counts(self) -> dict[str, int]:
        """Returns how many requests there were by verb, or "verb/subresource"."""
        with self._lock:
            return dict(self._counts)

    def log(self) -> list[Entry]:
        """Returns the latest requests, oldest first."""
        with self._lock:
            return list(self._log)

    def reset(self) -> None:
        """Start a new record."""
        with self._lock:
            self._counts.clear()
            self._log.clear()
