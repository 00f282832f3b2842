"""What each answer of a server or of our own processes means, in tables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from eni_tasks.errors import StateUnavailable
from eni_tasks.model.work import Pause, WorkKind
from eni_tasks.services.doctor.findings import Finding, Verdict
from eni_tasks.services.doctor.redis_checks import examine_redis
from eni_tasks.services.doctor.running_checks import (
    examine_clocks,
    examine_instances,
    examine_switches,
    examine_watcher,
    examine_workers,
)
from eni_tasks.state.server import ServerDescription
from eni_tasks.state.summary import BreakerSummary, StateSummary, WorkSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = 1_000_000.0
WELL = ServerDescription(
    now=NOW,
    product="Redis",
    version="7.0.15",
    mode="standalone",
    role="master",
    eviction="noeviction",
    used_bytes=10,
    most_bytes=0,
    persistence="snapshots",
    persistence_error="",
    resync_slot_seconds=50.0,
)
LOCAL = "redis://127.0.0.1:6379/0"
WORK = WorkSummary(pending_count=1, claimed_count=0, waiting_count=0, overdue_count=0, oldest_overdue_seconds=0.0)


class Server:
    """A server that describes itself, or does not answer."""

    def __init__(self, description: ServerDescription | None) -> None:
        self._description = description

    def describe(self) -> ServerDescription:
        if self._description is None:
            raise StateUnavailable("Redis did not serve us: refused")
        return self._description


class Answering:
    """Workers that answer, or a broker that does not."""

    def __init__(self, answers: Mapping[str, tuple[str, ...]] | None) -> None:
        self._answers = answers

    def queues(self) -> Mapping[str, tuple[str, ...]]:
        if self._answers is None:
            raise StateUnavailable("the broker did not pass our question")
        return self._answers


def summary(**changes: Any) -> StateSummary:
    values: dict[str, Any] = {
        "now": NOW,
        "generation": "g",
        "pause": None,
        "work": dict.fromkeys(WorkKind, WORK),
        "queues": {"ec2": 3, "apiserver": 0},
        "buckets": {},
        "breakers": {},
        "subnets": (),
        "infrastructure_at": NOW - 20,
        "inventory_at": NOW - 30,
        "read_failure": "",
        "orphans_count": 0,
        "deficit_count": 0,
        "deficit_since": None,
    }
    return StateSummary(**(values | changes))


def not_fine(findings: list[Finding]) -> list[tuple[str, str]]:
    assert all(bool(finding.advice) == (finding.verdict is not Verdict.OK) for finding in findings)
    return [(finding.what, finding.verdict.value) for finding in findings if finding.verdict is not Verdict.OK]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"version": "6.2.14"}, [("version", "trouble")]),
        ({"version": "10.0"}, []),
        ({"version": ""}, [("version", "unknown")]),
        ({"product": "Valkey", "version": "9.1.2"}, []),
        ({"mode": "cluster"}, [("mode", "trouble")]),
        ({"role": "slave"}, [("mode", "trouble")]),
        ({"eviction": "allkeys-lru"}, [("eviction", "trouble")]),
        ({"eviction": "volatile-ttl"}, [("eviction", "trouble")]),
        ({"eviction": ""}, [("eviction", "unknown")]),
        ({"used_bytes": 81, "most_bytes": 100}, [("memory", "trouble")]),
        ({"used_bytes": 79, "most_bytes": 100}, []),
        ({"persistence": ""}, []),
        ({"persistence_error": "rdb_last_bgsave_status"}, [("persistence", "trouble")]),
    ],
    ids=lambda value: "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_redis(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    findings, answer = examine_redis(Server(msgspec.structs.replace(WELL, **changes)), LOCAL)
    assert not_fine(findings) == found
    assert answer is not None


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (LOCAL, []),
        ("redis://:secret@localhost", []),
        ("redis://:secret@redis.example:6379/0", [("TLS", "note")]),
        ("rediss://:secret@redis.example:6379/0", []),
        ("rediss://redis.example?ssl_ca_certs=/etc/ca.crt", []),
        ("rediss://redis.example?ssl_cert_reqs=none", [("TLS", "note")]),
        ("rediss://redis.example?ssl_check_hostname=false", [("TLS", "note")]),
    ],
    ids=["local", "localhost", "plain", "tls", "own-ca", "unverified", "any-name"],
)
def test_the_way_to_redis(url: str, found: list[tuple[str, str]]) -> None:
    findings, _ = examine_redis(Server(WELL), url)
    assert not_fine(findings) == found
    assert "secret" not in str(findings)


def test_redis_away() -> None:
    findings, answer = examine_redis(Server(None), LOCAL)
    assert not_fine(findings) == [("reachable", "trouble")]
    assert answer is None


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"a": ("ec2", "apiserver")}, []),
        ({"a": ("ec2",), "b": ("apiserver",), "c": ("ec2",)}, []),
        ({"a": ("ec2",)}, [("apiserver", "trouble")]),
        ({}, [("ec2", "trouble"), ("apiserver", "trouble")]),
        (None, [("workers", "trouble")]),
    ],
    ids=["one-for-both", "one-each", "one-missing", "none", "no-broker"],
)
def test_workers(answers: dict[str, tuple[str, ...]] | None, found: list[tuple[str, str]]) -> None:
    assert not_fine(examine_workers(Answering(answers), ("ec2", "apiserver"), summary())) == found


@pytest.mark.parametrize(("seconds", "late"), [(0.0, False), (59.0, False), (61.0, True)])
def test_work_that_no_worker_serves(seconds: float, *, late: bool) -> None:
    stuck = msgspec.structs.replace(WORK, overdue_count=4, oldest_overdue_seconds=seconds)
    work = {WorkKind.MAINTAIN: stuck, WorkKind.PUBLISH: WORK}
    found = not_fine(examine_workers(Answering({"a": ("ec2",)}), ("ec2",), summary(work=work)))
    assert found == ([("maintain work", "trouble")] if late else [])


@pytest.mark.parametrize(
    ("changes", "slot", "found"),
    [
        ({}, 50.0, []),
        ({"infrastructure_at": NOW - 64}, None, []),
        ({"infrastructure_at": NOW - 66}, None, [("ticks", "trouble")]),
        ({"generation": None}, 50.0, [("ticks", "trouble")]),
        ({"infrastructure_at": None}, 50.0, [("reads", "note")]),
        ({"infrastructure_at": NOW - 179}, 50.0, []),
        ({"infrastructure_at": NOW - 181}, 50.0, [("reads", "trouble")]),
    ],
    ids=["well", "due-now", "no-tick", "emptied", "never-read", "late", "too-late"],
)
def test_watcher(changes: dict[str, Any], slot: float | None, found: list[tuple[str, str]]) -> None:
    server = msgspec.structs.replace(WELL, resync_slot_seconds=slot)
    assert not_fine(examine_watcher(summary(**changes), server, 60.0)) == found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"pause": Pause(who="Ada", why="x", since=NOW)}, [("pause", "note")]),
        ({"breakers": {"A": BreakerSummary(until=NOW, why="x")}}, [("A", "trouble")]),
    ],
    ids=["none", "paused", "broken"],
)
def test_switches(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert not_fine(examine_switches(summary(**changes))) == found


def test_nodes_that_claim_the_instance_of_another_are_named() -> None:
    assert not_fine(examine_instances({})) == []
    findings = examine_instances({"i-1": ["older", "typo"], "i-2": ["one", "two", "three"]})
    assert not_fine(findings) == [("i-1", "trouble"), ("i-2", "trouble")]
    first, second = (finding.message for finding in findings)
    assert first.startswith("It belongs to older, ")
    assert first.endswith(": typo.")
    assert second.endswith(": two, three.")


@pytest.mark.parametrize(
    ("ahead", "verdict"), [(0, "ok"), (4, "ok"), (-4, "ok"), (30, "note"), (-30, "note"), (200, "trouble")]
)
def test_clocks(ahead: float, verdict: str) -> None:
    of_redis, of_cluster = examine_clocks(NOW + ahead, NOW, time.time() + ahead)
    assert (of_redis.verdict, of_cluster.verdict) == (verdict, verdict)
    assert len(examine_clocks(NOW, NOW, None)) == 1
