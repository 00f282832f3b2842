"""What an examination says: one finding per thing that was looked at."""

from __future__ import annotations

from enum import StrEnum

from eni_tasks.model.network import Value


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"  # works, and somebody should know
    TROUBLE = "trouble"  # something does not work, or will not for long
    UNKNOWN = "unknown"  # could not be found out


class Finding(Value, frozen=True, omit_defaults=False):
    """One thing: what was looked at, what is so, and (unless it is fine) what to do."""

    area: str
    what: str
    verdict: Verdict
    says: str
    do: str = ""


class Area:
    """Collects the findings of one area."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.findings: list[Finding] = []

    def ok(self, what: str, says: str) -> None:
        """Note that a thing is fine."""
        self._add(what, Verdict.OK, says, "")

    def note(self, what: str, says: str, do: str) -> None:
        """Note something that works for now."""
        self._add(what, Verdict.NOTE, says, do)

    def trouble(self, what: str, says: str, do: str) -> None:
        """Note something that does not work."""
        self._add(what, Verdict.TROUBLE, says, do)

    def unknown(self, what: str, says: str, do: str) -> None:
        """Note something that could not be found out."""
        self._add(what, Verdict.UNKNOWN, says, do)

    def _add(self, what: str, verdict: Verdict, says: str, do: str) -> None:
        self.findings.append(Finding(area=self._name, what=what, verdict=verdict, says=says, do=do))
