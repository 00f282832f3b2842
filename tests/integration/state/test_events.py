"""The stream of events."""

from __future__ import annotations

from state_under_test import NODE, State


def test_events_are_read_in_order_from_where_one_stopped(state: State) -> None:
    for number in range(3):
        state.events.append("AssignPrivateIpAddresses", {"node": NODE, "count": number})
    first, *_ = state.events.after("0", limit=1)
    assert (first.what, first.fields) == ("AssignPrivateIpAddresses", {"node": "n", "count": "0"})
    assert [e.fields["count"] for e in state.events.after(first.id, limit=9)] == ["1", "2"]
