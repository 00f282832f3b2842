"""Prefix delegation: Cilium's vectors call by call, and the cases that they leave open."""

from __future__ import annotations

import msgspec
import pytest
from superseded import SUPERSEDED, ours
from test_action_vectors import first_step, shown
from vector_world import Vector, cases, load, node_state, policy_of, with_interfaces
from worlds import M5_LARGE, T3_SMALL, eni, planned, subnet, world

from eni_tasks.adapters.ec2.errors import reaction_to
from eni_tasks.domain import capacity, prefixes
from eni_tasks.domain.planner import plan
from eni_tasks.domain.prefixes import Delegation, note_fallback
from eni_tasks.errors import Ec2Reaction
from eni_tasks.model.node import Memory, PoolDemand
from eni_tasks.model.plan import Assign, CreateInterface, Reason

NOW = 1000.0
ON = {"prefix_delegation": True}
BLOCKS = ("10.1.2.0/28", "10.1.2.16/28")


def delegated() -> list[Vector]:
    """The vectors of nodes with prefix delegation that are about more than IPv6."""
    of_files = (*load("action_allocate"), *load("action_create"), *load("multipool-1.20"))
    found = [vector for vector in of_files if policy_of(vector).prefix_delegation]
    return [v for v in found if "ipv6" not in v["id"] and v["input"].get("kind") != "max_allocatable"]


@pytest.mark.parametrize("vector", cases(delegated()))
def test_the_calls_one_after_the_other(vector):
    state, policy, expected = node_state(vector), policy_of(vector), ours(vector)
    errors = {op: list(answers) for op, answers in vector["input"].get("ec2_errors", {}).items()}
    for call in expected["calls"]:
        if call["op"] in ("AttachNetworkInterface", "ModifyNetworkInterfaceAttribute"):
            continue
        action = plan(state, policy, NOW).action
        assert action is not None
        step = first_step([call])
        assert {key: value for key, value in shown(action).items() if key in step} == step
        error = (errors.get(call["op"]) or [None]).pop(0) if errors.get(call["op"]) else None
        if error is None or vector["id"] in SUPERSEDED:
            return
        if reaction_to(error["code"], error["message"]) is not Ec2Reaction.NO_PREFIX:
            return  # another refusal leads to no single addresses (F10): see the services' tests
        state = msgspec.structs.replace(state, no_prefix=state.no_prefix | {action.subnet_id})


def test_vectors_are_there():
    assert len(delegated()) >= 13


def test_capacity_of_vector_with_use_primary():
    [vector] = [v for v in load("multipool-1.20") if v["id"] == "mp20-cap-use-primary"]
    node = world(use_primary_address=True, first_interface_index=0).node
    assert capacity.instance_capacity(M5_LARGE, node) == vector["expected_fixed"]["max_allocatable"]


def assigned(state, **policy):
    action = planned(state, **ON, **policy).action
    assert isinstance(action, Assign)
    return action.interface_id, action.count, action.prefix_count


def created(state):
    action = planned(state, **ON).action
    assert isinstance(action, CreateInterface)
    return action.subnet_id, action.secondary_count, action.prefix_count


# -- who gets prefixes -----------------------------------------------------------------------------
def test_each_interface_decides_for_itself():
    """One with single addresses keeps to them until it is full; the next gets prefixes."""
    of_before = world(eni(0, 0), eni(1, 5), eni(2, 0), used=5, min_allocate=60)
    assert assigned(of_before) == ("eni-1", 4, 0)
    filled = with_interfaces(of_before, (eni(0, 0), eni(1, 9), eni(2, 0)))
    assert assigned(filled) == ("eni-2", 0, 4)


@pytest.mark.parametrize(
    ("limits", "node"),
    [
        (msgspec.structs.replace(M5_LARGE, hypervisor="xen"), {}),
        (msgspec.structs.replace(M5_LARGE, hypervisor=""), {}),
        (M5_LARGE, {"disable_prefix_delegation": True}),
    ],
    ids=["xen", "unknown hypervisor", "switched off in the object"],
)
def test_nodes_without_prefixes(limits, node):
    assert assigned(world(eni(0, 0), eni(1, 0), limits=limits, **node)) == ("eni-1", 8, 0)


def test_bare_metal_gets_prefixes_although_ec2_names_no_hypervisor():
    metal = msgspec.structs.replace(M5_LARGE, hypervisor="", bare_metal=True)
    assert assigned(world(eni(0, 0), eni(1, 0), limits=metal)) == ("eni-1", 0, 1)


def test_switched_off_again_prefixes_keep_counting_and_no_new_ones_come():
    left = world(eni(0, 0), eni(1, 0, prefixes=BLOCKS), eni(2, 0), used=30)
    decided = planned(left)
    assert (decided.figures.available, decided.figures.needed) == (32, 6)
    assert decided.figures.capacity == 2 * 9 + 2 * 15
    assert (decided.action.interface_id, decided.action.count, decided.action.prefix_count) == ("eni-1", 6, 0)


# -- how many --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("want", "fits", "count"),
    [(1, 99, 1), (16, 99, 1), (17, 99, 2), (17, 31, 1), (8, 15, 0), (1, 16, 1), (0, 99, 0), (5, -3, 0)],
)
def test_prefixes_are_rounded_up_to_the_need_and_down_at_the_cap(want, fits, count):
    assert prefixes.count(want, fits) == count


def test_slots_limit_the_prefixes_of_one_interface():
    full = (eni(0, 0), eni(1, 2, prefixes=tuple(f"10.1.2.{16 * n}/28" for n in range(5))))
    assert assigned(world(*full, used=80, pre_allocate=100)) == ("eni-1", 0, 2)  # nine slots: two, five, two more
    assert capacity.room(full[1], M5_LARGE) == 2


def test_the_subnet_limits_the_prefixes():
    assert assigned(world(eni(0, 0), eni(1, 0), min_allocate=60, subnets=(subnet("subnet-a", 33),))) == ("eni-1", 0, 2)
    assert created(world(eni(0, 0), min_allocate=60, subnets=(subnet("subnet-a", 33),))) == ("subnet-a", 0, 2)
    # The interface itself takes one address.
    assert created(world(eni(0, 0), min_allocate=60, subnets=(subnet("subnet-a", 32),))) == ("subnet-a", 0, 1)
    assert created(world(eni(0, 0), min_allocate=60, subnets=(subnet("subnet-a", 16),))) == ("subnet-a", 9, 0)


def test_a_new_interface_gets_what_fits_into_its_slots():
    assert created(world(eni(0, 0), used=200, subnets=(subnet("subnet-a", 1000),))) == ("subnet-a", 0, 9)  # M-14


def test_max_allocate_is_a_hard_cap():
    """Prefixes are rounded down at the cap; what is left below it comes as single addresses."""
    node = {"min_allocate": 40, "max_allocate": 40}
    empty = world(eni(0, 0), eni(1, 0), **node)
    assert assigned(empty) == ("eni-1", 0, 2)
    some = with_interfaces(empty, (eni(0, 0), eni(1, 0, prefixes=BLOCKS)))
    assert assigned(some) == ("eni-1", 7, 0)
    rest = with_interfaces(empty, (eni(0, 0), eni(1, 7, prefixes=BLOCKS)))
    assert created(rest) == ("subnet-a", 1, 0)
    full = planned(with_interfaces(rest, (eni(0, 0), eni(1, 7, prefixes=BLOCKS), eni(2, 1))), **ON)
    assert (full.action, full.reason, full.figures.available) == (None, Reason.AT_SIZE, 40)


def test_a_cap_below_sixteen_still_gives_addresses():
    assert assigned(world(eni(0, 0), eni(1, 0), max_allocate=6)) == ("eni-1", 6, 0)


def test_primaries_that_pods_get_count_against_the_cap_of_a_new_interface():
    node = {"use_primary_address": True, "first_interface_index": 0, "used": 8}
    attached = eni(0, 9)
    assert created(world(attached, max_allocate=27, **node)) == ("subnet-a", 0, 1)
    assert created(world(attached, max_allocate=26, **node)) == ("subnet-a", 6, 0)


@pytest.mark.parametrize(
    ("attached", "expected"),
    [
        ((eni(0, 0),), 2 * 144),
        ((eni(0, 0), eni(1, 0)), 2 * 144),
        ((eni(0, 0), eni(1, 5)), 9 + 144),  # set up without delegation
        ((eni(0, 0), eni(1, 2, prefixes=BLOCKS)), 2 + 7 * 16 + 144),
    ],
    ids=["none", "empty", "single addresses", "both"],
)
def test_capacity_counts_slots(attached, expected):
    state = world(*attached)
    assert planned(state, **ON).figures.capacity == expected
    assert capacity.instance_capacity(M5_LARGE, state.node, attached, Delegation(on=True)) == expected


def test_the_default_of_pre_allocate_counts_on_no_prefix():
    """An agent waits for so many at its start, and there may be no prefix."""
    tiny = msgspec.structs.replace(T3_SMALL, max_interfaces=2, ipv4_per_interface=2, hypervisor="nitro")
    state = world(eni(0, 0), limits=tiny)
    assert capacity.pre_allocate_default(tiny, state.node, state.interfaces, 8) == 1
    assert created(state) == ("subnet-a", 0, 1)


# -- no prefix to be had ---------------------------------------------------------------------------
TWO = (subnet("subnet-a", 100), subnet("subnet-b", 60))
LACKS_A, LACKS_BOTH = {"no_prefix": frozenset({"subnet-a"})}, {"no_prefix": frozenset({"subnet-a", "subnet-b"})}


def test_a_sibling_subnet_is_asked_before_single_addresses():
    state = world(eni(0, 0), eni(1, 0), subnets=TWO, **LACKS_A)
    assert created(state) == ("subnet-b", 0, 1)
    assert assigned(world(eni(0, 0), eni(1, 0), subnets=TWO, **LACKS_BOTH)) == ("eni-1", 8, 0)


def test_an_attached_interface_with_prefixes_comes_before_a_new_one():
    attached = (eni(0, 0), eni(1, 0, "subnet-a"), eni(2, 0, "subnet-b", prefixes=BLOCKS))
    assert assigned(world(*attached, used=32, subnets=TWO, **LACKS_A)) == ("eni-2", 0, 1)


def test_siblings_must_match_the_selectors():
    tagged = (subnet("subnet-a", 100, tags={"for": "pods"}), subnet("subnet-b", 60))
    state = world(eni(0, 0), eni(1, 0), subnets=tagged, subnet_tags={"for": "pods"}, **LACKS_A)
    assert assigned(state) == ("eni-1", 8, 0)


def test_without_a_free_place_for_an_interface_single_addresses_come_at_once():
    state = world(eni(0, 0), eni(1, 0), eni(2, 0), subnets=TWO, **LACKS_A)
    assert assigned(state) == ("eni-1", 8, 0)
    assert "single addresses instead" in " ".join(planned(state, **ON).explanation)


def test_the_fallback_asks_for_no_more_than_there_are_free_slots():
    held = tuple(f"10.1.{2 + n // 16}.{16 * (n % 16)}/28" for n in range(7))
    state = world(eni(0, 0), eni(1, 0, prefixes=held), used=110, **LACKS_A)
    assert assigned(state) == ("eni-1", 2, 0)
    new = world(eni(0, 0), used=100, **LACKS_A)
    assert created(new) == ("subnet-a", 9, 0)


def test_an_interface_that_fell_back_is_offered_prefixes_again_later():
    state = world(eni(0, 0), eni(1, 0), eni(2, 0), **LACKS_A)
    action = planned(state, **ON).action
    assert (action.count, action.fallback) == (8, True)
    after = (eni(0, 0), eni(1, 8), eni(2, 0))
    memory = note_fallback(Memory(fell_back=frozenset({"eni-gone"})), action.interface_id, after)
    assert memory.fell_back == {"eni-1"}
    # The subnet has blocks again, and the interface a free slot.
    again = world(*after, used=8, memory=memory)
    assert assigned(again) == ("eni-1", 0, 1)
    # An interface that had single addresses from the beginning gets no prefix.
    assert assigned(world(*after, used=8)) == ("eni-1", 1, 0)


def test_single_addresses_without_delegation_are_no_fallback():
    state = world(eni(0, 0), eni(1, 0))
    assert not planned(state).action.fallback
    assert not planned(world(eni(0, 0))).action.fallback
    assert planned(world(eni(0, 0), **LACKS_A), **ON).action.fallback


def test_nothing_is_to_be_had_anywhere():
    full = (subnet("subnet-a", 0), subnet("subnet-b", 1))
    decided = planned(world(eni(0, 0), eni(1, 0), subnets=full), **ON)
    assert (decided.action, decided.reason, decided.blocked) == (None, Reason.NO_SUBNET, True)


def test_a_full_node_with_prefixes_is_at_capacity():
    held = [tuple(f"10.{i}.{2 + n // 16}.{16 * (n % 16)}/28" for n in range(9)) for i in (1, 2)]
    state = world(eni(0, 0), eni(1, 0, prefixes=held[0]), eni(2, 0, prefixes=held[1]), used=288)
    decided = planned(state, **ON)
    assert (decided.action, decided.reason) == (None, Reason.AT_CAPACITY)
    assert (decided.figures.capacity, decided.figures.needed, decided.figures.remaining_interfaces) == (288, 0, 0)


def test_a_new_interface_gets_prefixes_of_both_families():
    demand = PoolDemand(ipv4=40, ipv6=8, pre_allocate=8)
    dual = (subnet("subnet-a", 100, ipv6_cidr="2001:db8:0:1::/64"),)
    limits = msgspec.structs.replace(M5_LARGE, ipv6_per_interface=10)
    state = world(eni(0, 0), limits=limits, demand=demand, pre_allocate=8, subnets=dual)
    action = planned(state, **ON, ipv6=True).action
    assert (action.ipv6_prefix, action.prefix_count, action.secondary_count, action.fallback) == (True, 3, 0, False)
    without = planned(msgspec.structs.replace(state, **LACKS_A), **ON, ipv6=True).action
    assert (without.ipv6_prefix, without.prefix_count, without.secondary_count) == (True, 0, 9)
    assert without.fallback
