"""A value in Redis that can't be decoded: it counts as unknown, is named once, and stops nothing else."""

from __future__ import annotations

from contextlib import suppress
from importlib import resources
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest
from commands import Commands
from structlog.testing import capture_logs

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.model.work import NODE_WORK, WorkKind
from eni_tasks.observability.counters import Series
from eni_tasks.state.decoding import number
from eni_tasks.tasks.registry import QUEUES

if TYPE_CHECKING:
    from pumped import System

NAMES = ("first", "second", "third")
GARBAGE = [b"\xff{", b"null", b"[1]", b"", b"0x10", b"nan", b"-1e999"]


def fleet(system: System) -> dict[str, str]:
    """Three nodes at size, the first of which grew; returns their instances."""
    instances = {name: system.add_node(name).id for name in NAMES}
    system.settle()
    system.use(4, "first")
    system.settle()
    assert all(len(system.pool(name)) >= 8 for name in NAMES)
    return instances


def everything(system: System) -> None:
    """All that processes and people do, but for changes."""
    services = system.services
    services.state.coordination.begin_generation()
    for kind in NODE_WORK:
        services.work.enqueue(kind, [(NodeName(name), Urgency.CLEANUP) for name in NAMES], ends_wait=True)
    system.resync()
    services.work.collect_orphans()
    system.settle(within_seconds=1)
    services.state.summary.read(QUEUES)
    services.state.coordination.progress()
    services.state.counters.read()
    services.state.events.latest("", 50)
    list(services.status.nodes())
    for name in NAMES:
        services.status.node(NodeName(name))


@pytest.mark.parametrize("garbage", GARBAGE)
def test_c08_each_field_of_each_hash(system: System, garbage: bytes) -> None:
    fleet(system)
    state = system.services.state
    state.counters.add({Series("marks_total", "", ("x",)): 1.0})
    state.limiter.open_breaker("AttachNetworkInterface", "why", 5)
    system.services.work.enqueue(WorkKind.MAINTAIN, [(NodeName("first"), Urgency.CLEANUP)])
    assert state.queue.claim(WorkKind.PUBLISH, NodeName("first"))
    state.limiter.throttled("CreateNetworkInterface")
    keys = sorted(key for key in system._all_keys() if system.redis.type(key) == b"hash")
    fields = {key: sorted(system.redis.hkeys(key)) for key in keys}
    assert sum(map(len, fields.values())) > 40
    system.later(60)
    # One field of each of a few hashes at a time: whatever is wrong in one must not hide what is wrong in another.
    for some in (keys[start::4] for start in range(4)):
        for wrong in zip_longest(*(fields[key] for key in some)):
            found = {key: field for key, field in zip(some, wrong, strict=True) if field is not None}
            for key, field in found.items():
                system.redis.hset(key, field, garbage)
            try:
                everything(system)
            except Exception as error:
                error.add_note(f"after {garbage!r} was written to {found}")
                raise
    system.later(3600)  # generations began, and waits with them
    system.settle(within_seconds=600)
    system.use(6, "second")
    everything(system)
    assert len(system.pool("second")) >= 6 + 8
    assert all(len(system.pool(name)) >= 8 for name in NAMES)
    assert all(status.ready for status in system.services.status.nodes())
    assert system.clean()


def test_c08_each_key_has_another_type(system: System) -> None:
    fleet(system)
    state, keys = system.services.state, system._keys
    state.limiter.open_breaker("AttachNetworkInterface", "why", 5)
    state.limiter.throttled("CreateNetworkInterface")
    system.services.work.enqueue(WorkKind.MAINTAIN, [(NodeName("first"), Urgency.CLEANUP)])
    state.coordination.take_slot("inventory", 60)
    names = sorted(name.decode() for name in system._all_keys())
    ours = [name for name in names if not name.startswith(keys.broker)]
    assert {name: system.redis.type(name).decode() for name in ours} == {name: keys.type_of(name) for name in ours}
    assert len(ours) > 25
    before = {name: system.pool(name) for name in NAMES}
    ticker = system.services.ticker(system.ingest)
    for place, name in enumerate(ours):
        system.redis.delete(name)
        if place % 2 and keys.type_of(name) != "hash":
            system.redis.hset(name, "what", "is this")
        else:
            system.redis.xadd(name, {"what": "is this"})
        for _ in range(30):
            with suppress(StateUnavailable):
                ticker.tick()
                everything(system)
                break
            system.later(5)
        else:
            pytest.fail(f"{name} stops everything")
        if name != keys.slot("inventory"):  # that one expires, whatever it holds
            assert system.redis.type(name).decode() in (keys.type_of(name), "none")
        assert {name: system.pool(name).keys() >= before[name].keys() for name in NAMES} == dict.fromkeys(NAMES, True)
    system.later(3600)
    system.settle(within_seconds=600)
    system.use(6, "second")
    everything(system)
    assert len(system.pool("second")) >= 6 + 8
    assert all(status.ready for status in system.services.status.nodes())
    assert system.clean()


def test_c08_facts_that_can_t_be_decoded_are_named_once_and_read_again(
    system: System,
) -> None:
    instances = fleet(system)
    before = {name: system.pool(name) for name in NAMES}
    system.later(60)
    key = system._keys.facts(instances["first"])
    system.redis.hset(key, "interfaces", "{")
    with capture_logs() as lines:
        for _ in range(3):
            assert system.status("first").reason != "at-size"
            assert system.status("second").ready
        system.resync()
        assert system.status("first").ready
    assert [line["key"] for line in lines if line["event"] == "state_value_unreadable"] == [f"{key} interfaces"]
    assert {name: system.pool(name) for name in NAMES} == before


def test_c08_a_read_after_unreadable_facts_that_lacks_what_pods_use_is_not_believed(system: System) -> None:
    instances = fleet(system)
    system.ec2.set_knobs(read_lag_seconds=50.0)
    system.use(8, "first")
    system.settle()
    used = system.use(16, "first")
    system.settle()
    system.redis.hset(system._keys.facts(instances["first"]), "interfaces", "{")
    system.later(1)  # the last mutation has settled, so that the read could be accepted
    system.resync()
    assert set(used) <= system.pool("first").keys()
    assert not system.status("first").ready
    system.ec2.set_knobs(read_lag_seconds=0.0)
    system.settle(within_seconds=120)
    assert set(used) <= system.pool("first").keys()
    assert system.status("first").ready


def test_c08_a_pause_that_can_t_be_decoded_is_a_pause(system: System) -> None:
    fleet(system)
    system.redis.hset(system._keys.switches, "pause", "{")
    system.fresh()
    system.use(8, "first")
    system.settle(within_seconds=60)
    assert system.mutations() == {}
    pause = system.services.state.summary.read(QUEUES).pause
    assert pause is not None
    assert "eni-tasks resume" in pause.why
    system.services.admin.resume()
    system.settle(within_seconds=60)
    assert system.mutations()


def test_c08_a_journal_that_can_t_be_decoded_keeps_its_node_alone_and_doctor_says_what_to_do(
    system: System, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENI_TASKS_CLUSTER", system.cluster)
    monkeypatch.setenv("ENI_TASKS_REDIS_URL", redis_url)
    cli = Commands(system)
    fleet(system)
    system.redis.hset(system._keys.journal, "first", b"\xff{")
    system.fresh()
    for name in NAMES:
        system.use(8, name)
    system.settle(within_seconds=60)
    assert len(system.pool("first")) < 16
    assert all(len(system.pool(name)) >= 16 for name in NAMES[1:])
    answer = cli.json("doctor", code=1)
    (found,) = [each for each in answer["findings"] if each["what"] == "journal of first"]
    assert found["verdict"] == "trouble"
    assert "eni-tasks unlock first --delete-journal" in found["advice"]
    cli("unlock", "first", "--delete-journal")
    system.settle(within_seconds=60)
    assert len(system.pool("first")) >= 16


def test_c08_names_that_are_no_text_stop_nothing(system: System) -> None:
    fleet(system)
    keys = system._keys
    for kind in WorkKind:
        system.redis.zadd(keys.pending(kind), {b"\xff": 1})
    system.redis.zadd(keys.reads, {b"\xff": 1})
    system.redis.zadd(keys.deficits, {b"\xff": 1})
    system.redis.xadd(keys.events, {"what": b"\xff", b"\xfe": b"\xff"})
    everything(system)
    system.use(6, "second")
    everything(system)
    assert len(system.pool("second")) >= 6 + 8


@pytest.mark.parametrize(("value", "found"), [(b"12", 12.0), (b"-1.5", -1.5), (b"1e+15", 1e15), (b"", 0.0)])
@pytest.mark.parametrize("wrong", [*GARBAGE, b"1_0", b" 1", b"9e18x", b"9.3e18", b"1.2.3"])
def test_c08_a_script_and_a_process_read_the_same_number(
    system: System, value: bytes, found: float, wrong: bytes
) -> None:
    assert number("k", value) == found
    assert number("k", wrong) == 0.0
    head = (resources.files("eni_tasks.state") / "scripts/lib/number.lua").read_text()
    script = f"{head} return tostring(number(ARGV[1]) or 0)"
    assert float(system.redis.eval(script, 0, wrong)) == 0.0
    if value:
        assert float(system.redis.eval(script, 0, value)) == found
