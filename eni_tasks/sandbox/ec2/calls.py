"""The record of calls: who asked for what, when, and what came of it."""

from __future__ import annotations

from collections import Counter, deque

import msgspec

KEPT_CALLS = 200_000
OK = "OK"
DROPPED = "Dropped"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call; `code` is OK, EC2's code, or Dropped; `effect` tells whether it was carried out.

    `caller` is the access key that signed it, so that processes can be told apart.
    """

    time: float
    action: str
    parameters: dict[str, str]
    code: str
    caller: str
    effect: bool


class CallLog:
    """Keeps the last calls and counts all; the world's lock guards it."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=KEPT_CALLS)
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, call: Call) -> None:
        """Note a call."""
        self._calls.append(call)
        self._counts[call.action, call.code] += 1

    def calls(self, action: str = "") -> list[Call]:
        """Returns the calls since the last reset, of one action or of all, oldest first."""
        return [call for call in self._calls if action in {"", call.action}]

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the number of calls since the last reset, by action and code."""
        counts: dict[str, dict[str, int]] = {}
        for (action, code), count in sorted(self._counts.items()):
            counts.setdefault(action, {})[code] = count
        return counts

    def reset(self) -> None:
        """Start anew."""
        self._calls.clear()
        self._counts.clear()
