"""Redis is emptied in the middle of something: what EC2 has and the objects show must be enough to go on right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pumped import System

    from eni_tasks.services.tick import Ticker

NODE = NodeName("node")
SETTLE_SECONDS = 5.0


@pytest.fixture
def system(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    with pumped.running(redis_url, tmp_path, monkeypatch, settle_seconds=SETTLE_SECONDS) as system:
        yield system


def come_back(system: System, *, within_seconds: float, ticker: Ticker | None = None) -> None:
    """What a watcher and workers do that were not there before, unless the watcher's `ticker` was."""
    services = system.process()
    ticker = ticker or services.ticker(lambda: None)
    ticker.tick()
    system.ingest(services)
    ticker.tick()
    system.settle(services, within_seconds=within_seconds)


def test_a_read_that_lags_serves_no_need_twice(system: System) -> None:
    instance = system.add_node()
    system.settle()
    system.later(60)
    system.use(1)
    system.settle()
    assert [len(each.addresses) for each in system.interfaces(instance)] == [9]
    system.ec2.set_knobs(read_lag_seconds=SETTLE_SECONDS - 1)
    system.use(4)
    system.ingest()
    system.services.maintain.run(NODE)  # an interface is made, which neither reads nor the object show yet
    system.empty_redis()
    come_back(system, within_seconds=300)
    assert sum(len(each.addresses) for each in system.interfaces(instance)) == 12
    assert len(system.pool()) == 12
    assert system.status().ready
    assert system.clean()


def test_a_call_that_was_under_way_is_waited_for(system: System) -> None:
    instance = system.add_node(ipam={"pre-allocate": 4})
    system.settle_reads()
    real = system.services.ec2.assign_addresses
    ticker = system.services.ticker(lambda: None)
    ticker.tick()

    def overtaken(*args: object) -> object:
        system.empty_redis()
        come_back(system, within_seconds=1, ticker=ticker)
        return real(*args)

    system.services.ec2.assign_addresses = overtaken
    system.services.maintain.run(NODE)
    system.services.ec2.assign_addresses = real
    system.settle(within_seconds=300)
    system.later(60)
    system.resync()
    assert [len(each.addresses) for each in system.interfaces(instance)] == [4]
    assert len(system.pool()) == 4
    assert system.clean()


def test_a_call_is_waited_for_by_watchers_that_are_all_new(system: System) -> None:
    """No process lived through the loss; that other nodes were served before shows it."""
    system.add_node("other")
    system.settle()
    instance = system.add_node(ipam={"pre-allocate": 4})
    system.settle_reads()
    real = system.services.ec2.assign_addresses

    def overtaken(*args: object) -> object:
        system.empty_redis()
        come_back(system, within_seconds=1)
        return real(*args)

    system.services.ec2.assign_addresses = overtaken
    system.services.maintain.run(NODE)
    system.services.ec2.assign_addresses = real
    system.settle(within_seconds=300)
    assert [len(each.addresses) for each in system.interfaces(instance)] == [4]
    assert len(system.pool()) == 4
    assert system.clean()


def test_delete_on_termination_is_set_though_the_journal_was_lost(system: System) -> None:
    instance = system.add_node(eni={"first-interface-index": 1})
    system.settle_reads()
    system.dies(system.services.ec2, "set_delete_on_termination", after=False)
    with pytest.raises(pumped.Killed):
        system.settle(within_seconds=5)
    system.empty_redis()
    system.later(60)
    come_back(system, within_seconds=300)
    made = system.interfaces(instance)[1]
    assert made.attachment.delete_on_termination
    assert len(system.pool()) == 8
    assert system.clean()


def test_after_a_failover_work_continues_as_soon_as_reads_are_accepted(system: System) -> None:
    """Another run of the server may lack the last writes: nothing is changed before the instances are read again."""
    system.add_node()
    system.settle()
    ticker = system.services.ticker(lambda: None)
    ticker.tick()
    system.later(1)
    system.redis.hset(system._keys.generation_times, "run_id", "0123456789abcdef")
    system.use(4)
    system.fresh()
    ticker.tick()
    system.settle(within_seconds=1)
    assert (system.mutations(), system.writes()) == ({}, {})
    assert system.status().reason == "instance-not-read"
    system.settle(within_seconds=20)  # a call of before may run for the EC2 timeout + 5 s + the settle time
    assert system.mutations() == {"Assign": 1, "Create": 1, "Attach": 1, "Modify": 1}
    assert len(system.pool()) == 12
    assert system.status().ready
