"""The whole system in one process, moved by hand: no watcher, no workers, no waiting.

`pump` carries out the messages that wait, one after the other. Time passes by moving the clocks of Redis' scripts and
of EC2 ahead.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pumped_world import LEASE_SECONDS, World

from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.ec2.world import build_default_world
from eni_tasks.sandbox.kube.admin import write_kubeconfig
from eni_tasks.sandbox.kube.server import KubeServer
from eni_tasks.state.connection import advance_clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from eni_tasks.bootstrap import Services

__all__ = ["LEASE_SECONDS", "Killed", "System", "running"]


class Killed(BaseException):
    """The worker died here: nothing of ours may catch it."""


class System(World):
    """Everything that one test drives."""

    # -- moving it -----------------------------------------------------------------------------
    def ingest(self, services: Services | None = None) -> None:
        """Do the watcher's work: list all objects, and hand them over."""
        services = services or self.services
        services.ingest.take_list(services.node_feed.pages())

    def pump(self, services: Services | None = None) -> list[dict[str, Any]]:
        """Carry out the messages that wait, and those that they cause; returns the reports."""
        services = services or self.services
        reports = []
        while self.messages.waiting:
            kind, name = self.messages.waiting.popleft()
            if kind is WorkKind.MAINTAIN:
                reports.append(services.maintain.run(name))
            elif kind is WorkKind.PUBLISH:
                reports.append(services.publish.run(name))
            elif name is Pass.ORPHANS:
                reports.append(services.orphans.run())
            elif name is Pass.INVENTORY:
                reports.append(services.refresh.read_inventory())
            else:
                reports.append(services.refresh.read_requested())
            assert len(reports) < 2000, "it never comes to rest"
        return reports

    def settle(self, services: Services | None = None, *, within_seconds: float = 0.0) -> list[dict[str, Any]]:
        """Go on until all is quiet: watch, tick, work; meanwhile `within_seconds` pass."""
        services = services or self.services
        ends_at, reports = self._ahead_seconds + within_seconds, []
        while True:
            self.ingest(services)
            services.work.requeue_overdue(200)
            if services.state.reads.due_count():
                services.work.enqueue_pass(Pass.INSTANCES)
            if self.messages.waiting:
                reports += self.pump(services)
                continue
            wait = self._next_due_seconds()
            if wait is None or self._ahead_seconds + wait > ends_at:
                self.later(max(0.0, ends_at - self._ahead_seconds))
                return reports
            self.later(wait)

    def fail_repeatedly(self) -> None:
        """Let what fails be tried again a few times: each failure doubles the wait, which now outlasts any test."""
        for _ in range(6):
            self.settle()
            self.later(self._next_due_seconds() or 0.0)
        self.settle()

    def settle_reads(self) -> None:
        """Have the new nodes read, and leave what follows waiting."""
        self.ingest()
        self.services.refresh.read_requested()

    def resync(self, services: Services | None = None) -> None:
        """Let everything be read again, and what follows from it be done."""
        (services or self.services).work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
        self.settle(services)

    def later(self, seconds: float) -> None:
        """Let time pass for Redis and for EC2."""
        if not seconds:
            return
        self._ahead_seconds += seconds
        advance_clock(seconds)

    def _next_due_seconds(self) -> float | None:
        """How long until something that waits is due; None if nothing waits."""
        keys = [*(self._keys.pending(kind) for kind in WorkKind), self._keys.reads]
        first = [self.redis.zrange(key, 0, 0, withscores=True) for key in keys]
        due = [entry[0][1] / 1000 for entry in first if entry]
        return max(0.0, min(due) - self.services.state.now()) + 0.002 if due else None

    # -- dying ---------------------------------------------------------------------------------
    @staticmethod
    def dies(part: Any, method: str, *, after: bool, number: int = 1) -> None:
        """Kill the worker at the `number`-th call of a method, before or after the call has its effect."""
        real, calls = getattr(part, method), 0

        def dying(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number and not after:
                raise Killed
            answer = real(*args, **options)
            if calls == number:
                raise Killed
            return answer

        setattr(part, method, dying)


@contextmanager
def running(redis_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Iterator[System]:
    """A system with an EC2 and an API server of its own."""
    built = build_default_world(1)
    with Ec2Server(built.world) as ec2, KubeServer() as kube:
        for name, value in {
            "AWS_ENDPOINT_URL": ec2.url,
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_EC2_METADATA_DISABLED": "true",
            "KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", kube.url)),
        }.items():
            monkeypatch.setenv(name, value)
        system = System(redis_url, ec2, built, kube, **settings)
        try:
            yield system
        finally:
            system.close()
