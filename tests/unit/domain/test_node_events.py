"""What Events tell of a node: what stands in its way in the planner's words, and each interface that it got."""

from __future__ import annotations

import msgspec
import pytest
from vector_world import POLICY
from worlds import eni, subnet, world

from eni_tasks.domain.node_events import node_events
from eni_tasks.model.network import ownership
from eni_tasks.model.node import Memory

NOW = 1000.0
OURS = ownership(POLICY.cluster)
FULL = (eni(0, 9), eni(1, 9), eni(2, 9))


def told(state, **changes):
    state = msgspec.structs.replace(state, now=NOW, **changes)
    return [(event.reason, event.warning, event.message) for event in node_events(state, POLICY)]


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        pytest.param(world(*FULL, used=27, first_interface_index=0), "AtCapacity", "all it can carry, 27", id="full"),
        pytest.param(
            world(*FULL, used=27, first_interface_index=0, max_allocate=20), "AtCapacity", "max-allocate", id="capped"
        ),
        pytest.param(
            world(eni(0, 0), subnets=(subnet("subnet-a", 0),)), "NoSubnetWithRoom", "subnet", id="no subnet with room"
        ),
        pytest.param(
            msgspec.structs.replace(world(eni(0, 0)), instance_owner="node-0"),
            "InstanceOfAnotherNode",
            "belongs to node-0",
            id="taken",
        ),
        pytest.param(world(eni(0, 0), limits=None), "LimitsUnknown", "limits", id="no limits"),
        pytest.param(
            world(eni(0, 0), memory=Memory(trouble="CreateNetworkInterface: UnauthorizedOperation: no")),
            "Ec2Refused",
            "UnauthorizedOperation",
            id="refused",
        ),
    ],
)
def test_what_stands_in_the_way_is_told_in_the_planners_words(state, reason, words):
    ((found, warning, message),) = told(state)
    assert (found, warning) == (reason, True)
    assert words in message


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(world(eni(0, 0), eni(1, 9), used=1), id="at size"),
        pytest.param(world(eni(0, 0)), id="about to get its first interface"),
        pytest.param(world(eni(0, 0), subnets=(subnet("subnet-a", 0),), ignored=True), id="ignored"),
        pytest.param(world(eni(0, 0), subnets=(subnet("subnet-a", 0),), deleting=True), id="being deleted"),
    ],
)
def test_nothing_is_told_where_nothing_is_wrong(state):
    assert told(state) == []


def test_an_interface_of_ours_is_told_when_the_object_is_about_to_show_it():
    state = world(eni(0, 0), eni(1, 9, tags=OURS), used=1)
    message = "eni-1 was created in subnet-a and attached at device 1, with 9 addresses."
    assert told(state) == [("InterfaceCreated", False, message)]
    shown = msgspec.structs.replace(state.node, shown_interfaces=frozenset({"eni-1"}))
    assert told(state, node=shown) == []


def test_interfaces_of_others_are_not_told():
    """The first one comes with the instance; another cluster's, or an agent's, is not our work."""
    assert told(world(eni(0, 0), eni(1, 9, tags={**OURS, "io.cilium/cluster-name": "other"}), used=1)) == []


def test_an_interface_that_can_not_be_shown_yet_is_not_told():
    assert told(world(eni(0, 0), eni(1, 9, subnet="subnet-unlisted", tags=OURS), used=1)) == []
