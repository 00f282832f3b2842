"""`python -m chaos`: one run, reported as it goes; exit code 0 when all is well, 1 when not."""

from __future__ import annotations

import argparse
import random
import sys

from chaos.report import Options
from chaos.running import run


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="make chaos", description="A fleet in trouble, and whether it recovers.")
    new_seed = random.SystemRandom().randrange(10**6)
    parser.add_argument("--seed", type=int, default=new_seed, help="what happens and when (default: a new one)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long trouble lasts (default: 60)")
    parser.add_argument("--nodes", type=int, default=30, help="size of the fleet (default: 30)")
    parser.add_argument("--deadline", type=float, default=150.0, help="seconds until all must be right (default: 150)")
    parser.add_argument("--prefixes", action="store_true", help="with /28 prefixes, where a node's type takes them")
    given = parser.parse_args()
    return Options(given.seed, given.seconds, given.nodes, given.deadline, prefixes=given.prefixes)


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - for people


def main() -> int:
    """Run; returns the exit code."""
    options = _options()
    _tell(f"seed {options.seed}")
    report = run(options, _tell)
    for line in report.lines():
        _tell(line)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
