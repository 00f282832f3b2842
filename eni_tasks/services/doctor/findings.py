"""Findings: the result of an examination, one for each check."""

from __future__ import annotations

from enum import StrEnum

from eni_tasks.model.network import Value


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"  # works, and a person should know
    TROUBLE = "trouble"  # something does not work, or will not for long
    UNKNOWN = "unknown"  # could not be found out


class Finding(Value, frozen=True, omit_defaults=False):
    """The result of one check: what was examined, the verdict, and (unless it is ok) what to do."""

    area: str
    what: str
    verdict: Verdict
    message: str
    advice: str = ""


class Area:
    """Collects the findings of one area."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.findings: list[Finding] = []

    def ok(self, what: str, message: str) -> None:
        """Add that a check found nothing wrong."""
        self._add(what, Verdict.OK, message, "")

    def note(self, what: str, message: str, advice: str) -> None:
        """Add something that works and that a person should know."""
        self._add(what, Verdict.NOTE, message, advice)

    def trouble(self, what: str, message: str, advice: str) -> None:
        """Add something that does not work."""
        self._add(what, Verdict.TROUBLE, message, advice)

    def unknown(self, what: str, message: str, advice: str) -> None:
        """Add something that could not be found out."""
        self._add(what, Verdict.UNKNOWN, message, advice)

    def _add(self, what: str, verdict: Verdict, message: str, advice: str) -> None:
        self.findings.append(Finding(area=self._name, what=what, verdict=verdict, message=message, advice=advice))
