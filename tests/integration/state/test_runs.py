"""What a run exchanges with Redis: begin and end in one round trip each, and objects with all that follows."""

from __future__ import annotations

from state_under_test import KIND, NODE, State, node

from eni_tasks.model.network import Infrastructure
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Urgency
from eni_tasks.model.work import WorkKind
from eni_tasks.state.runs import NewObjects, RunEnd


def test_what_follows_from_objects_is_written_with_them(state: State) -> None:
    work = [(NODE, Urgency.EMPTY)]
    changes = NewObjects(objects=[node("1")], reads=[NODE], maintain=work, publish=work, deficits=[NODE])
    assert state.runs.store(changes) == {WorkKind.MAINTAIN: [NODE], WorkKind.PUBLISH: [NODE]}
    assert state.nodes.object(NODE) == node("1")
    assert (state.reads.due_count(), state.nodes.in_deficit()) == (1, [NODE])
    changes = NewObjects(objects=[node("2")], maintain=work, publish=work, deficits=[NODE])
    assert state.runs.store(changes) == {WorkKind.MAINTAIN: [], WorkKind.PUBLISH: []}, "merged"


def test_a_run_begins_and_ends_in_one_round_trip_each(state: State) -> None:
    state.store(node(spec={"instance-id": "i-1", "eni": {"instance-type": "m5.large"}}))
    state.network.put_infrastructure(Infrastructure(described_at=1))
    state.nodes.read(NODE)  # decodes the infrastructure, once
    exchanges = state.exchanges()
    begun = state.runs.begin(KIND, NODE)
    assert begun is not None
    assert len(exchanges) == 1
    memory = Memory(uid="uid-1", instance_id="i-1", failures=1)
    assert state.runs.end(begun[0], RunEnd(memory=memory, publish=Urgency.DEFICIT)).publish
    assert len(exchanges) == 2
    assert state.nodes.read(NODE).memory.failures == 1


def test_a_held_node_has_no_other_run(state: State) -> None:
    state.claim()
    assert state.runs.begin(KIND, NODE) is None
