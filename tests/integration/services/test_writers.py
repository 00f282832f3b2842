"""Writing objects that others write too, and an API server that refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from eni_tasks.sandbox.kube.knobs import Fault

if TYPE_CHECKING:
    from pumped import System

    from eni_tasks.model.network import NodeName


def test_conflicts_lose_nothing_of_either_side(system: System) -> None:
    """B72: while we are refused the agent reports an address in use; both are there in the end."""
    system.add_node()
    system.settle()
    system.fresh()
    system.kube.faults.add([Fault(verb="patch", subresource="status", code=409, times_count=2)])
    used = system.use(1)
    system.settle()
    assert set(system.object()["status"]["ipam"]["used"]) == set(used)
    assert len(system.pool()) == 9
    assert system.writes() == {"status": 3, "spec": 1}


def test_a_write_that_is_always_refused_is_tried_again_later(system: System) -> None:
    system.add_node()
    system.settle()
    system.fresh()
    system.kube.faults.add([Fault(verb="patch", subresource="status", code=409, times_count=3)])
    system.use(1)
    system.settle()
    assert system.writes() == {"status": 3}
    assert len(system.pool()) == 8
    assert system.mutations() == {"Assign": 1}
    system.settle(within_seconds=5)
    assert len(system.pool()) == 9
    assert system.mutations() == {"Assign": 1}


def test_the_agent_reports_between_our_reading_and_our_writing(system: System) -> None:
    system.add_node()
    system.settle()
    nodes = system.services.publish._nodes
    real, reported = nodes.patch_status, []

    def late(name: NodeName, operations: Any) -> Any:
        if not reported:
            reported.extend(system.use(4))
        return real(name, operations)

    nodes.patch_status = late
    system.use(1)
    system.settle(within_seconds=30)
    assert set(system.object()["status"]["ipam"]["used"]) == set(reported)
    assert len(system.pool()) == 12
    assert system.status().ready


def test_a_person_changes_the_spec_between_our_reading_and_our_writing(system: System) -> None:
    """B73."""
    system.add_node()
    system.settle()
    nodes = system.services.publish._nodes
    real = nodes.patch_spec

    def late(name: NodeName, operations: Any) -> Any:
        system.change("node", lambda body: body["spec"]["ipam"].update({"pre-allocate": 2, "max-allocate": 20}))
        return real(name, operations)

    nodes.patch_spec = late
    system.use(1)
    system.settle(within_seconds=30)
    assert system.object()["spec"]["ipam"]["pre-allocate"] == 2
    assert system.object()["spec"]["ipam"]["max-allocate"] == 20
    assert len(system.pool()) == 9


@pytest.mark.parametrize(
    "fault",
    [Fault(verb="patch", subresource="status", code=500), Fault(verb="patch", subresource="status", code=0)],
    ids=["500", "no-answer"],
)
def test_without_the_status_the_spec_is_not_written(system: System, fault: Fault) -> None:
    system.add_node()
    system.settle()
    system.fresh()
    system.kube.faults.add([fault])
    system.use(1)
    system.settle()
    assert system.writes() == {"status": 1}
    assert len(system.pool()) == 8
    system.settle(within_seconds=60)
    assert len(system.pool()) == 9
    assert system.mutations() == {"Assign": 1}


def test_a_spec_that_was_refused_is_written_later(system: System) -> None:
    system.add_node()
    system.settle()
    system.fresh()
    system.kube.faults.add([Fault(verb="patch", subresource="", code=503)])
    system.use(1)
    system.settle(within_seconds=60)
    assert system.writes() == {"status": 1, "spec": 2}
    assert len(system.pool()) == 9


def test_missing_rights_are_not_hammered(system: System) -> None:
    system.kube.knobs.denied = ["patch ciliumnodes/status"]
    system.add_node()
    system.settle(within_seconds=300)
    assert system.mutations() == {"Assign": 1}
    assert system.writes()["status"] <= 11
    system.kube.knobs.denied = []
    system.settle(within_seconds=60)
    assert system.status().ready
