"""From nodes to gauges: odd nodes distort no total, and what is unknown is absent."""

from __future__ import annotations

import pytest

from eni_tasks.exporter.gauges import of_fleet, of_nodes
from eni_tasks.model.network import NodeName
from eni_tasks.services.status import NodeStatus

NOW = 1000.0


def gauges(*nodes: NodeStatus) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels): sample.value for sample in of_fleet(nodes, NOW)}


def status(name: str = "n", **figures: object) -> NodeStatus:
    return NodeStatus(node=NodeName(name), **figures)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("remaining", "free_slots", "candidates", "slots", "full"),
    [(3, 2, 1, 2, 0), (0, 0, 0, 0, 1), (0, -1, 1, 0, 1), (-1, -1, 0, 0, 1)],
    ids=["room", "full", "more attached than allowed, one with room", "more attached than allowed"],
)
def test_interfaces_that_can_take_addresses(
    remaining: int, free_slots: int, candidates: int, slots: int, full: int
) -> None:
    crowded = status(capacity=9, remaining_interfaces=remaining, free_slots=free_slots)
    roomy = status("m", capacity=9, remaining_interfaces=5, free_slots=3)
    found = gauges(crowded, roomy)
    assert found["ipam_interface_candidates",] == candidates + 2
    assert found["ipam_empty_interface_slots",] == slots + 3
    assert found["ipam_available_interfaces",] == candidates + 2 + slots + 3
    assert found["ipam_nodes", "at-capacity"] == full


def test_a_node_whose_figures_are_unknown_is_a_node_and_nothing_else() -> None:
    unknown = status(used=4, reason="instance-not-read")
    found = gauges(unknown)
    assert found["ipam_nodes", "total"] == found["nodes", "instance-not-read"] == 1
    assert found["ipam_nodes", "at-capacity"] == found["ipam_nodes", "in-deficit"] == found["nodes_ready",] == 0
    assert ("facts_oldest_age_seconds",) not in found
    assert "ipam_available_ips" not in {sample.name for sample in of_nodes([unknown])}


def test_the_oldest_facts_count_and_none_comes_from_the_future() -> None:
    read = [status(described_at=NOW - 5), status("m", described_at=NOW - 50), status("k")]
    assert gauges(*read)["facts_oldest_age_seconds",] == 50
    assert gauges(status(described_at=NOW + 1))["facts_oldest_age_seconds",] == 0


def test_no_nodes_at_all() -> None:
    found = gauges()
    assert found["ipam_nodes", "total"] == found["ipam_ips", "available"] == 0
