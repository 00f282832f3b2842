"""Which security groups an object may select for its new interfaces."""

from __future__ import annotations

import msgspec
import pytest
from vector_world import POLICY
from worlds import eni, group, world

from eni_tasks.domain.planner import plan
from eni_tasks.model.plan import Reason

ETH0 = eni(0, 0, "subnet-n")  # its group is sg-node
GROUPS = (
    group("sg-2", k="v"),
    group("sg-3", k="v"),
    group("sg-5", x="y"),
    group("sg-9", "vpc-2", k="v"),
)
BY_ID = {"security_group_ids_filter": ("sg-2", "sg-b")}
BY_TAGS = {"security_group_tags_filter": {"k": "v"}}
IDS, TAGS = "ENI_TASKS_SECURITY_GROUP_IDS", "ENI_TASKS_SECURITY_GROUP_TAGS"


@pytest.mark.parametrize(
    ("bounds", "node", "expected"),
    [
        pytest.param(BY_ID, {"security_groups": ("sg-b", "sg-2")}, ("sg-b", "sg-2"), id="named, listed"),
        pytest.param(BY_TAGS, {"security_groups": ("sg-3",)}, ("sg-3",), id="named, tagged"),
        pytest.param(BY_TAGS, {"security_group_tags": {"k": "v"}}, ("sg-2", "sg-3"), id="found by tags, tagged"),
        pytest.param(BY_ID | BY_TAGS, {"security_groups": ("sg-2",)}, ("sg-2",), id="listed and tagged"),
        pytest.param(BY_ID | BY_TAGS, {}, ("sg-node",), id="none selected: the first interface's"),
        pytest.param(BY_ID, {"security_group_tags": {"k": "w"}}, ("sg-node",), id="none found: the first interface's"),
    ],
)
def test_groups_within_the_bounds(bounds, node, expected):
    policy = msgspec.structs.replace(POLICY, **bounds)
    assert plan(world(ETH0, groups=GROUPS, **node), policy, 1000.0).action.security_groups == expected


@pytest.mark.parametrize(
    ("bounds", "node", "refused", "setting"),
    [
        pytest.param(BY_ID, {"security_groups": ("sg-2", "sg-3")}, "sg-3", IDS, id="named, not listed"),
        pytest.param(BY_ID, {"security_group_tags": {"k": "v"}}, "sg-3", IDS, id="found by tags, not listed"),
        pytest.param(BY_TAGS, {"security_groups": ("sg-2", "sg-5")}, "sg-5", TAGS, id="named, not tagged"),
        pytest.param(BY_TAGS, {"security_groups": ("sg-7",)}, "sg-7", TAGS, id="named, not described by EC2"),
        pytest.param(BY_TAGS, {"security_group_tags": {"x": "y"}}, "sg-5", TAGS, id="found by other tags"),
        pytest.param(BY_ID | BY_TAGS, {"security_groups": ("sg-b",)}, "sg-b", TAGS, id="listed, not tagged"),
    ],
)
def test_groups_outside_the_bounds_are_refused(bounds, node, refused, setting):
    policy = msgspec.structs.replace(POLICY, **bounds)
    decided = plan(world(ETH0, groups=GROUPS, **node), policy, 1000.0)
    assert (decided.action, decided.blocked) == (None, True)
    assert decided.reason is Reason.SECURITY_GROUP_NOT_ALLOWED
    assert f"selects {refused}, which {setting} does not allow" in decided.explanation[-1]


def test_the_bounds_keep_no_address_from_an_interface_that_exists():
    policy = msgspec.structs.replace(POLICY, **BY_ID)
    decided = plan(world(ETH0, eni(1, 2), groups=GROUPS, security_groups=("sg-3",)), policy, 1000.0)
    assert decided.action.interface_id == "eni-1"
