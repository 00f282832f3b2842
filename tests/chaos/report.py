"""What one run is asked to do, and what became of it, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What is asked for.

    Args:
        seed: decides what happens and when.
        seconds: how long trouble lasts.
        nodes: the size of the fleet.
        deadline_seconds: how long after the last trouble everything must be right.
        lasting: whether there is trouble that is rightly remembered for minutes, too.
        pace: how much quicker than usual one trouble follows the other.
        prefixes: whether nodes get /28 prefixes, where their type takes them.
    """

    seed: int
    seconds: float
    nodes: int
    deadline_seconds: float
    lasting: bool = True
    pace: float = 1.0
    prefixes: bool = False


@dataclass
class Report:
    """What became of it; `failures` is empty when all is well, `logs` are kept when not.

    `collected` interfaces had been left over and were the orphan collector's to delete.
    """

    seed: int
    injected: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    ec2_codes: dict[str, dict[str, int]] = field(default_factory=dict)
    recovery_seconds: float = 0.0
    collected: int = 0
    failures: list[str] = field(default_factory=list)
    logs: Path | None = None

    def lines(self) -> list[str]:
        """All of it, for people."""
        lines = [f"injected ({self.injected.total()}):"]
        lines += [f"  {count:4} {name}" for name, count in sorted(self.injected.items())]
        lines += [
            f"what was prepared, and came about: {dict(self.happened) or 'nothing'}",
            f"processes that ended by themselves: {dict(self.ended) or 'none'}",
            "EC2 calls in the meantime, by outcome:",
        ]
        lines += [f"  {action}: {codes}" for action, codes in self.ec2_codes.items()]
        lines.append(f"left over, and found by the collector of orphans: {self.collected}")
        if not self.failures:
            return [*lines, f"seed {self.seed}: all is right, {self.recovery_seconds:.0f} s after the last trouble"]
        wrong = f"seed {self.seed}: {len(self.failures)} things are wrong"
        return [*lines, wrong, *(f"  {failure}" for failure in self.failures), f"logs: {self.logs}"]
