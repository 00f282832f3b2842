"""Reads have a rate limit that all workers share: one token per page, halved when EC2 throttles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pumped
import pytest

from eni_tasks.model.ec2_actions import AWS_RATE_LIMITS
from eni_tasks.model.work import Pass
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.services.mutate import Postponed

if TYPE_CHECKING:
    from pathlib import Path

    from pumped import System

ACTION = "DescribeNetworkInterfaces"


def test_aws_documented_limit_is_the_default() -> None:
    assert AWS_RATE_LIMITS[ACTION] == (100, 20)


def test_each_page_takes_a_token(system: System) -> None:
    system.add_node()
    system.settle()
    system.fresh()
    system.later(60)
    system.resync()
    assert system.reads()[ACTION] == 1
    assert system.bucket(ACTION)["tokens"] == pytest.approx(99, abs=0.5)


def test_a_pass_without_token_ends_and_comes_back(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = AWS_RATE_LIMITS | {ACTION: (1.0, 0.1)}
    with pumped.running(redis_url, tmp_path, monkeypatch, rate_limits=limits) as system:
        instance = system.add_node()
        system.settle(within_seconds=30)
        assert system.status().ready
        system.fresh()
        system.later(10)
        system.process().ec2.interfaces_of([instance.id])
        with pytest.raises(Postponed, match=ACTION):
            system.process().ec2.interfaces_of([instance.id])
        system.services.work.enqueue_pass(Pass.INVENTORY, ends_wait=True)
        (report,) = [each for each in system.pump() if "stopped" in each]
        assert ACTION in report["stopped"]
        assert 1 <= report["again_after_seconds"] <= 11
        before = system.reads().get(ACTION, 0)
        system.settle(within_seconds=12)
        assert system.reads()[ACTION] == before + 1


def test_throttled_reads_halve_the_rate(system: System) -> None:
    system.add_node()
    system.settle()
    system.ec2.add_faults([Fault(action=ACTION, code="RequestLimitExceeded", status=503, times=2)])
    system.resync()
    assert system.bucket(ACTION)["factor"] == 0.5
