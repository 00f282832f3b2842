"""One run: a fleet that is full, trouble by a plan, calm, and the verdict."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from random import Random
from typing import TYPE_CHECKING, Any

import redis
import urllib3

from chaos import ec2_troubles, troubles
from chaos.agents import Nodes
from chaos.ground import Ground
from chaos.report import Options, Report
from chaos.verdict import GRACE_SECONDS, Verdict
from eni_tasks.sandbox.running import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

START_SECONDS = 180.0
LOOK_SECONDS = 1.0
REPORT_SECONDS = 10.0
COLLECT_SECONDS = 60.0
CALM_SECONDS = 6.0  # everything is read once more from EC2
STEPS_PER_SECOND = 8.0
CALMING = ("Redis emptied", "Redis back in time", "Redis replica promoted", "etcd restored")
SPARE_ELASTIC_IPS = 2
# Several interfaces of few addresses each: there is always a reason to make another.
TYPES = ("m5.large", "m5.xlarge", "t3.medium", "r5.xlarge", "t3.large", "m5.2xlarge")
XEN = "m4.large"  # takes no prefixes
# Everything periodic is quick, so that a run shows in a minute what would take an hour.
SETTINGS = {
    "ENI_TASKS_RESYNC_SECONDS": "5",
    "ENI_TASKS_RELIST_SECONDS": "20",
    "ENI_TASKS_EC2_TIMEOUT_SECONDS": str(ec2_troubles.EC2_TIMEOUT_SECONDS),
    "ENI_TASKS_LEASE_SECONDS": str(troubles.LEASE_SECONDS),
    "ENI_TASKS_OVERDUE_SECONDS": "3",
    "ENI_TASKS_SETTLE_SECONDS": str(ec2_troubles.SETTLE_SECONDS),
    "ENI_TASKS_ORPHAN_INTERVAL_SECONDS": "5",
    "ENI_TASKS_ORPHAN_GRACE_SECONDS": str(GRACE_SECONDS),
    "ENI_TASKS_KUBE_TIMEOUT_SECONDS": "3",
    "ENI_TASKS_WATCH_TIMEOUT_SECONDS": "4",
    "ENI_TASKS_STATIC_ADDRESSES": "true",
    "ENI_TASKS_RELEASE_EXCESS": "true",
    "ENI_TASKS_RELEASE_DELAY_SECONDS": "1",
}


def run(options: Options, tell: Callable[[str], None]) -> Report:
    """Make one run.

    Args:
        options: what is asked for.
        tell: takes lines for people, as things happen.
    """
    report = Report(options.seed)
    settings = SETTINGS | {"ENI_TASKS_PREFIX_DELEGATION": str(options.prefixes).lower()}
    with suppress(_Failed), ExitStack() as stack:
        sandbox = stack.enter_context(
            Sandbox(lasting_objects=True, start_system=False, with_flower=False, settings=settings)
        )
        report.logs = sandbox.folder
        _add_nodes(sandbox, options.nodes, (*TYPES, XEN) if options.prefixes else TYPES)
        rng = Random(options.seed)  # noqa: S311 - to be repeated, no secret
        ground = stack.enter_context(closing(Ground(sandbox, Nodes(sandbox, rng))))
        verdict = stack.enter_context(closing(Verdict(ground)))
        _Run(options, report, ground, verdict, tell).whole(_plan(rng, options))
        report.ended, report.happened = ground.ended, ground.happened
        if report.failures:
            raise _Failed  # the sandbox keeps its logs when it is left like this
    return report


def _add_nodes(sandbox: Sandbox, count: int, types: tuple[str, ...]) -> None:
    """Add nodes, a third of which ask for an Elastic IP; there are a few more of these than needed."""
    with_static, tags = count // 3, {"of": "chaos"}
    for _ in range(with_static + SPARE_ELASTIC_IPS):
        sandbox.ec2.allocate_elastic_ip(**tags)
    ipam: Any = {"static-ip-tags": tags}
    sandbox.fleet.add(with_static, types=types, ipam=ipam)
    sandbox.fleet.add(count - with_static, types=types)


class _Failed(Exception):
    pass


class _Run:
    def __init__(
        self, options: Options, report: Report, ground: Ground, verdict: Verdict, tell: Callable[[str], None]
    ) -> None:
        self._options, self._report = options, report
        self._ground, self._verdict, self._tell = ground, verdict, tell
        self._began = time.monotonic()
        ground.say = self._say

    def whole(self, plan: list[tuple[float, str, int]]) -> None:
        self._ground.start()
        if not self._converges("the fleet is filled", START_SECONDS):
            return
        self._say(f"{len(plan)} troubles in {self._options.seconds:.0f} s")
        self._ground.ec2.reset_calls()
        self._suffer(plan)
        self._report.ec2_codes = self._ground.ec2.counts()
        self._ground.calm()
        self._say("calm")
        if self._converges("everything is right again", self._options.deadline_seconds):
            self._collect()
            self._report.failures += self._verdict.commands()
            self._stay_calm()
        self._report.failures += [*self._verdict.leftovers(), *self._verdict.violations()]

    def _collect(self) -> None:
        """Give the collector of orphans its time: now nothing is in the making, so all that is left is for it."""
        deadline = time.monotonic() + COLLECT_SECONDS
        while (left := len(self._verdict.leftovers())) and time.monotonic() < deadline:
            self._report.collected = max(left, self._report.collected)
            self._ground.tick()
            self._verdict.let_grace_pass()
            time.sleep(LOOK_SECONDS)

    def _stay_calm(self) -> None:
        self._verdict.begin_calm()
        deadline = time.monotonic() + CALM_SECONDS
        while time.monotonic() < deadline:
            self._ground.tick()
            time.sleep(LOOK_SECONDS)
        self._report.failures += self._verdict.needless()

    def _suffer(self, plan: list[tuple[float, str, int]]) -> None:
        began, steps = time.monotonic(), 0
        while (now := time.monotonic() - began) < self._options.seconds or plan:
            self._ground.tick()
            while plan and plan[0][0] <= now:
                _, name, own_seed = plan.pop(0)
                self._say(f"{name}: {self._inject(name, own_seed)}")
            if steps < now * STEPS_PER_SECOND:
                steps += 1
                self._ground.nodes.step()
            else:
                time.sleep(0.02)

    def _inject(self, name: str, seed: int) -> str:
        rng = Random(seed)  # noqa: S311 - to be repeated, no secret
        try:
            what = (troubles.PASSING | troubles.LASTING)[name](self._ground, rng)
        except (redis.RedisError, urllib3.exceptions.HTTPError, RuntimeError) as error:
            return f"not possible now: {error}"
        self._report.injected[name] += 1
        return what

    def _converges(self, what: str, within_seconds: float) -> bool:
        began, reported = time.monotonic(), 0.0
        while True:
            self._ground.tick()
            missing = self._verdict.missing()
            after = self._report.recovery_seconds = time.monotonic() - began
            if not missing:
                self._say(f"{what} after {after:.1f} s")
                return True
            if after > within_seconds:
                self._report.failures += [f"not within {within_seconds:.0f} s: {what}", *missing]
                return False
            if after > reported + REPORT_SECONDS:
                reported = after
                self._say(f"{len(missing)} things to wait for, such as {missing[0]}")
            time.sleep(LOOK_SECONDS)

    def _say(self, text: str) -> None:
        self._tell(f"{time.monotonic() - self._began:6.1f} s  {text}")


def _plan(rng: Random, options: Options) -> list[tuple[float, str, int]]:
    """When what happens: as many rounds through all troubles, each in an order of its own, as fit."""
    at, plan = 0.0, []
    if options.lasting:
        plan = [(rng.uniform(0.0, options.seconds / 4), name, rng.randrange(2**32)) for name in troubles.LASTING]
    names = list(troubles.PASSING)
    while at < options.seconds:
        for name in rng.sample(names, len(names)):
            at += rng.uniform(0.2, 1.2) / options.pace
            if at < options.seconds:
                plan.append((at, name, rng.randrange(2**32)))
        # After these all processes are careful for some seconds, and little happens: not more than one in a round.
        usual = [name for name in names if name not in CALMING]
        names = [*usual, rng.choice(CALMING)]
    return sorted(plan)
