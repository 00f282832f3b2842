"""What people reported of such controllers, as tables; the ids name the report."""

from __future__ import annotations

import msgspec
import pytest
from vector_world import POLICY
from worlds import M5_4XLARGE, M5_LARGE, T3_SMALL, eni, group, planned, subnet, world

from eni_tasks.domain import capacity, watermark
from eni_tasks.domain.addresses import pool
from eni_tasks.domain.planner import plan
from eni_tasks.domain.release import Clock, Contract, memory_of
from eni_tasks.model.node import Memory, Node
from eni_tasks.model.plan import Assign, CreateInterface, Reason

ETH0 = eni(0, 0, "subnet-n")
# EC2 has just refused a further interface.
REFUSED = Memory(interface_refusals=1, interface_refused_at=1000.0)


@pytest.mark.parametrize(
    ("available", "used", "pre", "minimum", "above", "expected"),
    [
        (61, 29, 20, 60, 0, 1),
        (17, 0, 8, 16, 0, 1),
        (20, 0, 8, 16, 4, 0),
        (20, 4, 8, 0, 0, 8),
        (20, 4, 8, 17, 8, 0),
        (21, 0, 8, 0, 4, 9),
    ],
)
def test_b24_excess_respects_min_allocate(available, used, pre, minimum, above, expected):  # noqa: PLR0913
    found = watermark.excess(
        available=available, used=used, pre_allocate=pre, min_allocate=minimum, max_above_watermark=above
    )
    assert found == expected
    after = available - found
    assert watermark.needed(available=after, used=used, pre_allocate=pre, min_allocate=minimum, cap=None) == 0


@pytest.mark.parametrize(
    ("available", "used", "pre", "minimum", "cap", "expected"),
    [(12, 10, 8, 0, 15, 3), (18, 15, 8, 0, 15, 0), (0, 0, 8, 16, 10, 10)],
)
def test_b27_max_allocate_bounds_the_need(available, used, pre, minimum, cap, expected):  # noqa: PLR0913
    need = watermark.needed(available=available, used=used, pre_allocate=pre, min_allocate=minimum, cap=cap)
    assert need == expected


@pytest.mark.parametrize(
    ("index", "primaries", "expected"),
    [
        pytest.param(0, False, 9, id="all interfaces, secondaries"),
        pytest.param(1, False, 6, id="without the first"),
        pytest.param(1, True, 8, id="without the first, primaries too"),
        pytest.param(0, True, 12, id="all, primaries too: use-primary-address covers the first as well (F3)"),
    ],
)
def test_b29_one_capacity(index, primaries, expected):
    node = Node(name="node-1", uid="uid-1", first_interface_index=index, use_primary_address=primaries)
    assert capacity.instance_capacity(T3_SMALL, node) == expected


def with_marks(available, used, pre, marked):
    """A node of which `marked` addresses were in excess for long, and are not handed out."""
    names = [f"10.1.1.{number}" for number in range(marked)]
    asked = {name: Clock(0.0, 500.0) for name in names}
    memory = Memory(release=memory_of(Contract.HANDSHAKE, "", asked))
    state = world(eni(1, available), used=used, pre_allocate=pre, memory=memory)
    node = msgspec.structs.replace(state.node, release_ips=dict.fromkeys(names, "ready-for-release"))
    return msgspec.structs.replace(state, node=node)


RELEASING = msgspec.structs.replace(POLICY, release_excess=True)


@pytest.mark.parametrize(("used", "kept"), [(2, 1), (3, 0)], ids=["one in excess", "a pod took the other"])
def test_b22_marks_beyond_the_excess_are_taken_back(used, kept):
    decided = plan(with_marks(4, used, 1, 1), RELEASING, now=1000.0)
    assert len(decided.release.asked) == kept
    assert (decided.action is None) is (kept == 0)
    assert decided.figures.needed == 0


def test_b28_marks_go_before_anything_is_assigned():
    decided = plan(with_marks(10, 8, 2, 2), RELEASING, now=1000.0)
    assert decided.figures.needed == 0
    assert decided.action is None
    assert decided.release.asked == {}


@pytest.mark.parametrize(
    ("secondaries", "prefixes", "expected"),
    [
        pytest.param(0, 0, 9, id="the primary keeps its slot"),
        pytest.param(4, 0, 5, id="a secondary takes one"),
        pytest.param(4, 2, 3, id="so does a whole prefix"),
        pytest.param(12, 0, 0, id="never negative"),
    ],
)
def test_b25_room_on_an_interface(secondaries, prefixes, expected):
    blocks = tuple(f"10.9.{number}.0/28" for number in range(prefixes))
    assert capacity.room(eni(1, secondaries, prefixes=blocks), M5_LARGE) == expected


NOTHING = (None, None, None)


def step(state):
    action = planned(state).action
    if isinstance(action, Assign):
        return "assign", action.interface_id, action.count
    if isinstance(action, CreateInterface):
        return "create", action.subnet_id, action.secondary_count
    return NOTHING


FULL_A = (subnet("subnet-a", 0), subnet("subnet-b", 50))
FEW_IDS = {"subnet_ids": ("subnet-b", "subnet-c"), "subnet_tags": {"k": "v"}}
ZONES = (
    subnet("subnet-a", 90, tags={"k": "v"}),
    subnet("subnet-b", 90, availability_zone="eu-1b"),
    subnet("subnet-c", 20),
)
EXCLUDE = {"exclude_interface_tags": {"a": "1", "b": "2"}}
EXCLUDED = eni(1, 0, tags={"a": "1", "b": "2"})

STEPS = {
    "B07 a node that is being deleted": (world(ETH0, deleting=True), NOTHING),
    "B18 a detaching interface takes slot and index, and gives nothing": (
        world(ETH0, eni(1, 9, attachment_status="detaching")),
        ("create", "subnet-a", 8),
    ),
    "B20 an empty instance id": (world(*(eni(n, 3) for n in range(40)), instance_id=""), NOTHING),
    "B25 primary and 9 secondaries are full: create": (world(ETH0, eni(1, 9), used=2), ("create", "subnet-a", 1)),
    "B25 all full: nothing": (world(ETH0, eni(1, 9), eni(2, 9), used=18), NOTHING),
    "B30 the only subnet said full": (world(ETH0, eni(1, 2), cooling_down=frozenset({"subnet-a"})), NOTHING),
    "B31 room on an interface in a full subnet: another subnet": (
        world(ETH0, eni(1, 2), subnets=FULL_A),
        ("create", "subnet-b", 6),
    ),
    "B33 nothing free": (world(ETH0, subnets=(subnet("subnet-a", 0),)), NOTHING),
    "B33 one free: not even for the interface and one pod": (world(ETH0, subnets=(subnet("subnet-a", 1),)), NOTHING),
    "B33 four free: one goes to the interface": (
        world(ETH0, subnets=(subnet("subnet-a", 4),)),
        ("create", "subnet-a", 3),
    ),
    "B33 reserved is not free": (
        world(ETH0, subnets=(subnet("subnet-a", 40),), reserved={"subnet-a": 36}),
        ("create", "subnet-a", 3),
    ),
    "B34 the node's own subnet before an emptier one": (
        world(ETH0, subnets=(subnet("subnet-n", 20), subnet("subnet-q", 200)), node_subnet_id="subnet-n"),
        ("create", "subnet-n", 8),
    ),
    "B34 no own subnet known: the emptiest": (
        world(ETH0, subnets=(subnet("subnet-n", 20), subnet("subnet-q", 200))),
        ("create", "subnet-q", 8),
    ),
    "B34 selectors hold for new interfaces only": (
        world(ETH0, eni(1, 2), subnet_tags={"role": "pods"}),
        ("assign", "eni-1", 6),
    ),
    "B35 ids before tags, those of another zone ignored": (
        world(ETH0, subnets=ZONES, **FEW_IDS),
        ("create", "subnet-c", 8),
    ),
    "B35 Name is a tag like any other": (
        world(
            ETH0,
            subnets=(subnet("subnet-a", 20, tags={"Name": "pods-a"}), subnet("subnet-b", 200)),
            subnet_tags={"Name": "pods-a"},
        ),
        ("create", "subnet-a", 8),
    ),
    "B41 right after EC2 refused a further interface": (
        world(ETH0, eni(1, 29), eni(2, 29), limits=M5_4XLARGE, used=58, memory=REFUSED),
        NOTHING,
    ),
    "B46 an excluded interface is passed over": (
        world(ETH0, EXCLUDED, eni(2, 0, tags={"a": "1"}), **EXCLUDE),
        ("assign", "eni-2", 8),
    ),
    "B46 but keeps its slot": (world(ETH0, EXCLUDED, eni(2, 9, tags={"a": "1"}), used=9, **EXCLUDE), NOTHING),
    "B48 another VPC's interface": (world(ETH0, eni(1, 5, vpc_id="vpc-other")), ("create", "subnet-a", 8)),
    "B62 the only match among many": (
        world(
            ETH0,
            subnets=(*(subnet(f"subnet-{n}", 200) for n in range(2500)), subnet("subnet-z", 30, tags={"p": "1"})),
            subnet_tags={"p": "1"},
        ),
        ("create", "subnet-z", 8),
    ),
}


@pytest.mark.parametrize(("state", "expected"), STEPS.values(), ids=STEPS.keys())
def test_first_step(state, expected):
    assert step(state) == expected


@pytest.mark.parametrize(
    ("interface", "expected"),
    [
        pytest.param({"attachment_status": "detaching"}, 2, id="B18 detaching"),
        pytest.param({"attachment_status": "attaching"}, 2, id="B18 attaching"),
        pytest.param({"vpc_id": "vpc-other"}, 2, id="B48 another VPC"),
        pytest.param({"owner_id": "999999999999"}, 2, id="B48 another account"),
        pytest.param({"requester_managed": True}, 2, id="B48 managed by a service"),
        pytest.param({"network_card": 1}, 1, id="another card has indexes of its own"),
        pytest.param({"attachment_status": "detached"}, 1, id="gone"),
    ],
)
def test_what_is_not_ours_gives_no_address_but_keeps_its_index(interface, expected):
    state = world(ETH0, eni(1, 9, **interface))
    decided = planned(state)
    assert pool(state.interfaces, state.node) == {}
    assert decided.action.device_index == expected
    assert decided.figures.remaining_interfaces == 3 - expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"first_interface_index": 1}, set(), id="index 1: nothing of the first interface"),
        pytest.param({"first_interface_index": 0}, {"10.0.1.0"}, id="index 0: its secondaries, not the primary"),
        pytest.param(
            {"first_interface_index": 0, "use_primary_address": True},
            {"10.0.0.4", "10.0.1.0"},
            id="use-primary-address: both",
        ),
    ],
)
def test_b45_the_instances_own_address(node, expected):
    state = world(eni(0, 1), **node)
    assert pool(state.interfaces, state.node).keys() == expected


GROUPS = (group("sg-3", k="v"), group("sg-2", k="v"), group("sg-9", "vpc-2", k="v"))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"security_groups": ("sg-b", "sg-a")}, ("sg-b", "sg-a"), id="B74 explicit, in order"),
        pytest.param({"security_group_tags": {"k": "v"}}, ("sg-2", "sg-3"), id="B74 all of the VPC that match"),
        pytest.param({"security_group_tags": {"k": "w"}}, ("sg-node",), id="B74 none matches: the first interface's"),
    ],
)
def test_security_groups(node, expected):
    assert planned(world(ETH0, groups=GROUPS, **node)).action.security_groups == expected


BLOCKED = {
    "B20": (world(ETH0, instance_id=""), Reason.NO_INSTANCE_ID),
    "B30": (world(ETH0, eni(1, 2), cooling_down=frozenset({"subnet-a"})), Reason.NO_SUBNET),
    "B33": (world(ETH0, subnets=(subnet("subnet-a", 0),)), Reason.NO_SUBNET),
    "B35": (world(ETH0, subnets=ZONES, subnet_ids=("subnet-b",)), Reason.NO_SELECTED_SUBNET),
    "B38": (world(ETH0, limits=None, instance_type="zz9.large"), Reason.LIMITS_UNKNOWN),
    "B75 no groups at all": (world(eni(0, 0, security_groups=())), Reason.NO_SECURITY_GROUP),
    "S-03 no interfaces": (world(), Reason.NO_INTERFACES),
    "M-10 tags match nothing": (world(ETH0, subnet_tags={"role": "pods"}), Reason.NO_SELECTED_SUBNET),
    "index beyond the interfaces": (world(ETH0, first_interface_index=3), Reason.AT_CAPACITY),
    "interfaces that carry their own address only": (
        world(ETH0, limits=msgspec.structs.replace(T3_SMALL, ipv4_per_interface=1)),
        Reason.AT_CAPACITY,
    ),
    "max-allocate beyond the capacity": (
        world(ETH0, eni(1, 9), eni(2, 9), used=18, max_allocate=90),
        Reason.AT_CAPACITY,
    ),
    "all attached, subnets full": (
        world(ETH0, eni(1, 9), eni(2, 3), used=12, subnets=(subnet("subnet-a", 0),)),
        Reason.NO_SUBNET,
    ),
}


@pytest.mark.parametrize(("state", "reason"), BLOCKED.values(), ids=BLOCKED.keys())
def test_blocked_with_a_reason_for_people(state, reason):
    decided = planned(state)
    assert (decided.action, decided.blocked, decided.reason) == (None, True, reason)
    assert "node-1" in " ".join(decided.explanation)


RESTING = {
    "at size": (world(ETH0, eni(1, 8)), Reason.AT_SIZE),
    "full by its capacity": (world(ETH0, eni(1, 9), eni(2, 9), used=18), Reason.AT_CAPACITY),
    "full by max-allocate": (world(ETH0, eni(1, 6), used=6, max_allocate=6), Reason.AT_CAPACITY),
    "ignored": (world(ETH0, ignored=True), Reason.IGNORED),
    "being deleted": (world(ETH0, deleting=True), Reason.DELETING),
    "not read": (msgspec.structs.replace(world(), facts=None), Reason.NOT_READ),
}


@pytest.mark.parametrize(("state", "reason"), RESTING.values(), ids=RESTING.keys())
def test_resting_is_not_blocked(state, reason):
    decided = planned(state)
    assert (decided.action, decided.blocked, decided.reason) == (None, False, reason)


def test_b41_the_reason_says_what_ec2_refused_and_when_it_is_tried_again():
    decided = planned(world(ETH0, eni(1, 9), used=9, memory=REFUSED))
    assert decided.reason == Reason.INTERFACE_REFUSED
    assert "at 1970-01-01T00:16:40Z (2 are attached, its type allows 3" in decided.explanation[-1]
    assert "next try is at 1970-01-01T00:26:40Z" in decided.explanation[-1]


def test_filters_of_the_operator_hold_for_old_and_new_interfaces():
    subnets = (subnet("subnet-a", 100), subnet("subnet-b", 20, tags={"pods": "yes"}))
    filtered = msgspec.structs.replace(POLICY, subnet_tags_filter={"pods": "yes"})
    assert plan(world(ETH0, eni(1, 2), subnets=subnets), filtered, 0.0).action.subnet_id == "subnet-b"
    by_id = msgspec.structs.replace(POLICY, subnet_ids_filter=("subnet-a",))
    assert plan(world(ETH0, eni(1, 2), subnets=subnets), by_id, 0.0).action.interface_id == "eni-1"


def test_the_explanation_reads_like_a_story():
    decided = planned(world(ETH0, eni(1, 5), used=3, limits=M5_LARGE))
    assert decided.explanation == (
        "node-1 holds 5 addresses, 3 used, wants 8 free: 6 more are needed.",
        "eni-1 (device 1, subnet-a) has room for 4 and its subnet for 100: assign 4 of 6.",
    )
