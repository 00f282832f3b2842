"""The token buckets of reads."""

from __future__ import annotations

from state_under_test import State


def test_a_token_per_read_and_then_the_wait_for_the_next(state: State) -> None:
    state.limiter.buckets = {"DescribeVpcs": (2.0, 0.5)}
    assert [state.limiter.take_read("DescribeVpcs") for _ in range(2)] == [0.0, 0.0]
    assert 1.5 < state.limiter.take_read("DescribeVpcs") <= 2.0
    state.later(2.1)
    assert state.limiter.take_read("DescribeVpcs") == 0.0


def test_without_a_limit_no_read_waits(state: State) -> None:
    state.limiter.buckets = {"DescribeVpcs": (0.0, 0.0)}
    assert not any(
        state.limiter.take_read(action) for action in ("DescribeVpcs", "DescribeSubnets") for _ in range(200)
    )


def test_after_throttling_a_second_passes_and_the_rate_is_halved(state: State) -> None:
    state.limiter.buckets = {"DescribeVpcs": (100.0, 1.0)}
    assert state.limiter.take_read("DescribeVpcs") == 0.0
    state.limiter.throttled("DescribeVpcs")
    assert 0.5 < state.limiter.take_read("DescribeVpcs") <= 1.0
    state.later(1.1)
    wait = state.limiter.take_read("DescribeVpcs")
    assert 0.5 < wait <= 2.0


def test_a_clock_that_went_back_holds_no_read_up(state: State) -> None:
    """A bucket's times in the future were waited for: up to an hour, after a failover to a server whose clock lags."""
    state.limiter.buckets = {"DescribeVpcs": (2.0, 0.5)}
    state.later(3600)
    state.limiter.take_read("DescribeVpcs")
    state.limiter.throttled("DescribeVpcs")
    state.later(-3600)
    assert state.limiter.take_read("DescribeVpcs") == 0.0
