"""The names of the keys."""

from __future__ import annotations

from state_under_test import KIND, State, node

from eni_tasks.model.network import NodeName
from eni_tasks.model.state import Outcome


def test_every_key_carries_the_clusters_hash_tag(state: State) -> None:
    claim = state.claim()
    state.store(node())
    state.runs.record(claim, Outcome(journal=b"x"))
    state.coordination.begin_generation()
    assert state.keys.work(KIND, NodeName("n")) == f"{{eni:{state.cluster}}}:v1:work:maintain:n"
    tag = f"{{eni:{state.cluster}}}:v1:".encode()
    mine = list(state.client.scan_iter(f"*{state.cluster}*", count=1000))
    assert len(mine) >= 6
    assert all(key.startswith(tag) for key in mine)
