"""Cilium's action vectors: figures and first step of the planner.

What follows the first step (retries, clean-up) is the maintain service's business and tested there.
The vectors of 1.6 are read as nodes that ask for `use-primary-address`: see `vector_world`.
"""

from __future__ import annotations

import msgspec
import pytest
from superseded import held, ours
from vector_world import POLICY, load, node_state, policy_of, required

from eni_tasks.domain.planner import plan
from eni_tasks.model.node import Memory
from eni_tasks.model.plan import Assign, CreateInterface, Reason

NOW = 1000.0
ERRORS = {
    "No matching subnet available for ENI creation": Reason.NO_SELECTED_SUBNET,
    "No matching subnet available for interface creation": Reason.NO_SUBNET,
    "Unable to determine limits of instance type": Reason.LIMITS_UNKNOWN,
    "security groups": Reason.NO_SECURITY_GROUP,
}


@pytest.mark.parametrize("vector", held("action_allocate") + held("action_create"))
def test_figures_and_first_step(vector):
    expected = ours(vector)
    decided = plan(node_state(vector), policy_of(vector), NOW)

    stats = {key: getattr(decided.figures, key) for key in ("available", "used", "needed", "excess")}
    assert stats == vector_stats(vector, expected)
    for figure in ("capacity", "remaining_interfaces"):
        if figure in expected:
            assert getattr(decided.figures, figure) == expected[figure]
    if expected["calls"]:
        step = first_step(expected["calls"])
        assert {key: value for key, value in shown(decided.action).items() if key in step} == step
    else:
        assert decided.action is None
        assert (decided.blocked, decided.reason) in outcomes(expected)
    assert decided.explanation


def vector_stats(vector, expected):
    return required(vector)["stats"] | expected["stats"]


def first_step(calls):
    call = calls[0]
    if call["op"] in ("AssignPrivateIpAddresses", "AssignPrefixes"):
        return {"op": call["op"], "eni": call["eni"], "count": call["count"]}
    keys = ("subnet", "secondary_count", "prefix_count", "description", "groups")
    step = {key: call[key] for key in keys if key in call}
    attach = next((call for call in calls if call["op"] == "AttachNetworkInterface"), None)
    return step | ({"index": attach["index"]} if attach else {})


def shown(action):
    if isinstance(action, Assign):
        op = "AssignPrefixes" if action.prefix_count else "AssignPrivateIpAddresses"
        return {"op": op, "eni": action.interface_id, "count": action.count or action.prefix_count}
    assert isinstance(action, CreateInterface)
    assert action.tags == POLICY.interface_tags
    return {
        "subnet": action.subnet_id,
        "secondary_count": action.secondary_count,
        "prefix_count": action.prefix_count,
        "description": action.description,
        "groups": list(action.security_groups),
        "index": action.device_index,
    }


def outcomes(expected):
    if expected["decision"] == "error":
        return {(True, ERRORS[expected["error_contains"]])}
    if expected["decision"] == "out_of_enis":
        return {(True, Reason.AT_CAPACITY)}
    rest = {(False, Reason.AT_SIZE), (False, Reason.AT_CAPACITY)}
    return rest | {(True, Reason.NO_INTERFACES), (True, Reason.LIMITS_UNKNOWN)}


@pytest.mark.parametrize(
    ("vector_id", "expected"),
    [
        pytest.param("create-1.6-dot-absent", True, id="absent: true (S-11)"),
        pytest.param("create-1.6-modify-fails", True, id="true"),
        pytest.param("create-1.19-dot-false", False, id="false"),
    ],
)
def test_delete_on_termination(vector_id, expected):
    vector = by_id("action_create", vector_id)
    assert plan(node_state(vector), POLICY, NOW).action.delete_on_termination is expected


@pytest.mark.parametrize("vector_id", ["alloc-1.6-assign-fails-then-create", "alloc-1.19-assign-fails-then-create"])
def test_the_only_subnet_said_full_so_no_interface_is_created_in_it(vector_id):
    given = node_state(by_id("action_allocate", vector_id))
    decided = plan(msgspec.structs.replace(given, cooling_down=frozenset({"subnet-a"})), POLICY, NOW)
    assert (decided.action, decided.reason, decided.blocked) == (None, Reason.NO_SUBNET, True)


@pytest.mark.parametrize(
    ("file", "vector_id", "available", "needed", "step"),
    [
        ("action_allocate", "alloc-1.6-eth0", 0, 8, {"eni": "eni-0", "count": 8}),
        ("action_allocate", "alloc-1.6-capped-by-eni", 0, 20, {"eni": "eni-0", "count": 9}),
        ("action_allocate", "alloc-1.6-capped-by-subnet", 5, 8, {"eni": "eni-1", "count": 2}),
        ("action_allocate", "alloc-1.6-out-of-enis", 27, 0, {}),
        ("action_create", "create-1.6-nano", 0, 1, {"secondary_count": 1, "index": 1}),
        ("action_create", "create-1.6-fii0-full-eth0", 9, 4, {"secondary_count": 4, "index": 1}),
    ],
)
def test_the_same_worlds_when_primaries_are_not_pooled(file, vector_id, available, needed, step):
    given = node_state(by_id(file, vector_id))
    node = msgspec.structs.replace(given.node, use_primary_address=False)
    decided = plan(msgspec.structs.replace(given, node=node), POLICY, NOW)
    assert (decided.figures.available, decided.figures.needed) == (available, needed)
    action = shown(decided.action) if decided.action else {}
    assert {key: action.get(key) for key in step} == step


def test_not_running_instances_are_left_alone_for_a_while():
    vector = by_id("action_create", "create-1.19-attach-not-running")
    stopped = node_state(vector, memory=Memory(not_running_until=NOW + 1))
    assert plan(stopped, POLICY, NOW).reason == Reason.NOT_RUNNING
    assert plan(stopped, POLICY, NOW + 1).action is not None


def by_id(file, vector_id):
    return next(vector for vector in load(file) if vector["id"] == vector_id)
