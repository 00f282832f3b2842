"""A process that stood still between a permission and what it permits: it notices, and does nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pumped import LEASE_SECONDS, System

from eni_tasks.model.network import NodeName
from eni_tasks.services import lease_renewer, mutate, work

if TYPE_CHECKING:
    from collections.abc import Callable

NODE = NodeName("node")


class LocalClock:
    """The clock of a process that can be frozen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frozen_seconds = 0.0
        real = lease_renewer.local_seconds
        for module in (lease_renewer, mutate, work):
            monkeypatch.setattr(module, "local_seconds", lambda: real() + self.frozen_seconds)

    def freeze_after(self, part: Any, method: str, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Let the process stand still after the next call of a method, while others go on."""
        real = getattr(part, method)

        def frozen(*args: Any, **options: Any) -> Any:
            setattr(part, method, real)
            answer = real(*args, **options)
            self.frozen_seconds += seconds
            meanwhile()
            return answer

        setattr(part, method, frozen)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LocalClock:
    return LocalClock(monkeypatch)


def test_a_call_is_not_sent_long_after_it_was_permitted(system: System, clock: LocalClock) -> None:
    system.add_node()
    system.settle_reads()
    other = system.process()

    def meanwhile() -> None:
        system.later(75)
        system.settle(other, within_seconds=30)

    clock.freeze_after(system.services.state.limiter, "acquire", 75, meanwhile)
    system.fresh()
    system.services.maintain.run(NODE)
    system.settle(within_seconds=30)
    assert system.mutations() == {"Assign": 1}
    assert len(system.pool()) == 8
    assert system.reserved() == {} or sum(system.reserved().values()) == 8
    assert system.clean()


def test_a_call_that_was_not_sent_holds_nothing_back(system: System, clock: LocalClock) -> None:
    system.add_node()
    system.settle_reads()
    clock.freeze_after(system.services.state.limiter, "acquire", 6, lambda: None)
    system.fresh()
    report = system.services.maintain.run(NODE)
    assert system.mutations() == {}
    assert "was not sent" in report["did"][0]
    assert system.reserved() == {}
    system.settle(within_seconds=1)
    assert system.mutations() == {"Assign": 1}
    assert len(system.pool()) == 8


@pytest.mark.parametrize("write", ["patch_status", "patch_spec"])
def test_a_publisher_that_stood_still_writes_nothing_more(system: System, clock: LocalClock, write: str) -> None:
    system.add_node()
    system.settle()
    system.use(1)
    system.ingest()
    system.services.maintain.run(NODE)
    other = system.process()

    def meanwhile() -> None:
        system.later(LEASE_SECONDS + 1)
        system.use(6)
        system.settle(other, within_seconds=60)

    # Frozen before its first write, or between the two.
    runs, nodes = system.services.state.runs, system.services.publish._nodes
    part, method = (runs, "begin") if write == "patch_status" else (nodes, "patch_status")
    clock.freeze_after(part, method, LEASE_SECONDS + 1, meanwhile)
    system.services.publish.run(NODE)
    shown = system.pool()
    assert len(shown) == 14
    system.settle(within_seconds=60)
    assert system.pool() == shown
    assert system.status().ready
