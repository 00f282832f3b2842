"""A Redis that accepts connections and answers nothing: people and Prometheus learn it within seconds."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import redis
import redis_servers
from exporter_under_test import exporting
from waiting import waits_at_most

from eni_tasks.exporter import collector
from eni_tasks.model.network import NodeName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands import Commands
    from pumped import System

LIMIT_SECONDS = 3.0
NODE = NodeName("node")


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A server of this test's own: it is stopped."""
    with redis_servers.running() as url:
        yield url


@contextmanager
def silent(url: str) -> Iterator[None]:
    """Stop the server's process: its kernel still accepts connections."""
    with redis.Redis.from_url(url) as client:
        pid = client.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_exporter_says_so_at_every_scrape(system: System, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "KEPT_SECONDS", 0.0)
    system.add_node()
    system.settle()
    with exporting(system.process(interactive=True)) as exporter:
        before = exporter.scrape()
        assert before["state_up", ()] == 1
        assert before["ipam_nodes", ("total",)] == 1
        with silent(redis_url):
            took: list[float] = []
            for _ in range(3):
                started = time.monotonic()
                scraped = exporter.scrape()
                took.append(time.monotonic() - started)
                assert scraped.pop(("state_up", ())) == 0
                answered_at = scraped.pop(("state_answered_timestamp_seconds", ()))
                assert answered_at == pytest.approx(time.time(), abs=60)
                assert {name for name, _ in scraped} == {"build_info"}
            assert min(took) < LIMIT_SECONDS, "the others may have waited for the CPU"
            assert exporter.get("/healthz").status == 200
        after = exporter.scrape()
        assert after["state_up", ()] == 1
        assert after["ipam_nodes", ("total",)] == 1


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["status", NODE],
        ["plan", NODE],
        ["events"],
        ["maintain", NODE],
        ["publish", NODE],
        ["resync"],
        ["resync", "--instance", NODE],
        ["pause", "--why", "a test"],
        ["resume"],
        ["unlock", NODE],
        ["orphans"],
        ["orphans", "--dry-run"],
    ],
    ids=" ".join,
)
def test_commands_end_with_a_sentence(redis_url: str, cli: Commands, command: list[str]) -> None:
    with silent(redis_url), waits_at_most(LIMIT_SECONDS):
        ran = cli.run(*command, code=1)
    assert "Redis did not answer: Timeout" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_doctor_goes_on_without_redis(redis_url: str, cli: Commands) -> None:
    cli.json("doctor", code=1)  # so that its clients are imported
    with silent(redis_url), waits_at_most(LIMIT_SECONDS):
        findings = cli.json("doctor", code=1)["findings"]
    (reachable,) = [each for each in findings if (each["area"], each["what"]) == ("redis", "reachable")]
    assert reachable["verdict"] == "trouble"
    assert {"api server", "aws"} <= {each["area"] for each in findings}
