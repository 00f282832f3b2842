"""IPv6 prefixes and static addresses: where they go, why not, and that neither holds up the pool or the other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_planner_properties import carry_out, worlds
from vector_world import NOW, POLICY, with_interfaces
from worlds import eni, subnet, world

from eni_tasks.domain import setbacks
from eni_tasks.domain.planner import plan
from eni_tasks.domain.status import desired
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import Limits
from eni_tasks.model.node import Memory, PoolDemand, Setback
from eni_tasks.model.plan import Assign, AssignIpv6Prefix, AssociateAddress, CreateInterface, Plan, Reason
from eni_tasks.model.state import NodeState

BOTH = msgspec.structs.replace(POLICY, ipv6=True, static_addresses=True)
NITRO = Limits(
    instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10, ipv6_per_interface=10, hypervisor="nitro"
)
DUAL = (subnet("subnet-a", 100, ipv6_cidr="2001:db8:0:1::/64"),)
MIXED = (subnet("subnet-a", 100), subnet("subnet-b", 50, ipv6_cidr="2001:db8:0:2::/64"))
WANTS_IPV6 = {"demand": PoolDemand(ipv4=8, ipv6=8, pre_allocate=8)}
TAGS = {"static_ip_tags": {"pool": "egress"}}


def asking(*interfaces: Any, **parts: Any) -> NodeState:
    given: dict[str, Any] = {"limits": NITRO, "subnets": DUAL, "first_interface_index": 0} | parts
    return world(*interfaces, **given)


def planned(state: NodeState, policy: Any = BOTH) -> Plan:
    return plan(state, policy, NOW)


# -- IPv6 ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("interfaces", "parts", "where"),
    [
        ([eni(0, 8), eni(1, 0)], {}, "eni-0"),
        ([eni(0, 8), eni(1, 8)], {"first_interface_index": 1}, "eni-1"),
        ([eni(0, 8, tags={"no": "pods"}), eni(1, 8)], {"exclude_interface_tags": {"no": "pods"}}, "eni-1"),
        ([eni(0, 8, ipv6_addresses=tuple("123456789a")), eni(1, 8)], {}, "eni-1"),
        ([eni(0, 8, "subnet-a"), eni(1, 8, "subnet-b")], {"subnets": MIXED}, "eni-1"),
        ([eni(0, 8, attachment_status="detaching"), eni(1, 8)], {}, "eni-1"),
    ],
    ids=["lowest", "for-pods", "not-excluded", "with-a-slot", "dual-stack", "attached"],
)
def test_which_interface_gets_the_prefix(interfaces: list[Any], parts: dict[str, Any], where: str) -> None:
    decided = planned(asking(*interfaces, **WANTS_IPV6, **parts))
    assert decided.action == AssignIpv6Prefix(interface_id=where)
    assert decided.reason is Reason.IPV6


def test_the_prefix_of_an_interface_that_pods_do_not_use_does_not_count() -> None:
    held = eni(0, 0, ipv6_prefixes=("2001:db8:0:1:1::/80",))
    decided = planned(asking(held, eni(1, 8), first_interface_index=1, **WANTS_IPV6))
    assert decided.action == AssignIpv6Prefix(interface_id="eni-1")


def test_a_prefix_that_is_being_attached_is_waited_for() -> None:
    coming = eni(1, 0, ipv6_prefixes=("2001:db8:0:1:1::/80",), attachment_status="attaching")
    assert planned(asking(eni(0, 8), coming, **WANTS_IPV6)).action is None


def test_one_prefix_is_enough() -> None:
    decided = planned(asking(eni(0, 8), eni(1, 0, ipv6_prefixes=("2001:db8:0:1:1::/80",)), **WANTS_IPV6))
    assert (decided.action, decided.troubles) == (None, ())


def test_the_pool_and_the_prefix_share_a_new_interface_where_a_subnet_has_ipv6() -> None:
    full = eni(0, 9, "subnet-a")
    want = {"demand": PoolDemand(ipv4=12, ipv6=8, pre_allocate=8)}
    decided = planned(asking(full, subnets=MIXED, **want))
    assert isinstance(decided.action, CreateInterface)
    assert (decided.action.ipv6_prefix, decided.action.subnet_id, decided.action.secondary_count) == (
        True,
        "subnet-b",
        3,
    )


def test_the_pool_fills_attached_interfaces_before_one_is_created_for_the_prefix() -> None:
    decided = planned(asking(eni(0, 5, "subnet-a"), subnets=MIXED, **WANTS_IPV6))
    assert isinstance(decided.action, Assign)
    decided = planned(asking(eni(0, 8, "subnet-a"), subnets=MIXED, **WANTS_IPV6))
    assert isinstance(decided.action, CreateInterface)
    assert (decided.action.subnet_id, decided.action.secondary_count) == ("subnet-b", 0)


ALL_SLOTS = [eni(index, 8, "subnet-a") for index in range(3)]


@pytest.mark.parametrize(
    ("interfaces", "parts", "policy", "words"),
    [
        ([eni(0, 5)], {}, POLICY, "ENI_TASKS_IPV6"),
        ([eni(0, 5)], {"limits": msgspec.structs.replace(NITRO, hypervisor="xen")}, BOTH, "m5.large takes no IPv6"),
        ([eni(0, 5)], {"limits": msgspec.structs.replace(NITRO, ipv6_per_interface=0)}, BOTH, "takes no IPv6"),
        ([eni(0, 5)], {"memory": Memory(ipv6=Setback(count=1, until=NOW + 1, why="Refused."))}, BOTH, "Refused."),
        (ALL_SLOTS, {"subnets": MIXED}, BOTH, "All 3 interfaces that node-1 can carry are attached"),
    ],
    ids=["switched-off", "not-nitro", "no-slots", "refused-lately", "no-interface-slot"],
)
def test_why_there_is_no_prefix(interfaces: list[Any], parts: dict[str, Any], policy: Any, words: str) -> None:
    state = asking(*interfaces, **WANTS_IPV6, **parts)
    decided = planned(state, policy)
    assert any(words in trouble for trouble in decided.troubles)
    assert words in decided.trouble
    # The pool goes its own way.
    same = msgspec.structs.replace(state.node, demand=PoolDemand(ipv4=8, pre_allocate=8))
    alone = planned(msgspec.structs.replace(state, node=same), policy)
    assert msgspec.structs.replace(decided, troubles=()) == alone


def test_no_dual_stack_subnet_is_a_reason_and_the_pool_is_served() -> None:
    decided = planned(asking(eni(0, 5), subnets=(subnet("subnet-a", 100),), **WANTS_IPV6))
    assert isinstance(decided.action, Assign)
    decided = planned(asking(eni(0, 8), subnets=(subnet("subnet-a", 100),), **WANTS_IPV6))
    assert (decided.action, decided.blocked, decided.reason) == (None, False, Reason.AT_SIZE)
    assert "none can be created in such a subnet" in decided.trouble


def test_a_primary_that_pods_get_does_not_exceed_max_allocate() -> None:
    parts = {"use_primary_address": True, "max_allocate": 9, "subnets": MIXED}
    decided = planned(asking(eni(0, 8, "subnet-a"), **WANTS_IPV6, **parts))
    assert decided.action is None
    assert "max-allocate is 9" in decided.trouble


# -- static addresses --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "parts",
    [{}, {"first_interface_index": 1}, {"exclude_interface_tags": {"no": "pods"}}],
    ids=["for-pods", "not-for-pods", "excluded"],
)
def test_the_first_interface_gets_the_elastic_ip(parts: dict[str, Any]) -> None:
    decided = planned(asking(eni(0, 3, tags={"no": "pods"}), eni(1, 9), **TAGS, **parts))
    assert isinstance(decided.action, AssociateAddress)
    assert (decided.action.interface_id, decided.action.primary_address) == ("eni-0", "10.0.0.4")
    assert decided.action.tags == {"pool": "egress"}


def test_a_public_address_on_it_is_shown_and_is_enough() -> None:
    state = asking(eni(0, 8, public_address="198.18.0.9"), **TAGS)
    assert planned(state).action is None
    assert desired(CiliumNode(), state, BOTH).static_address == "198.18.0.9"
    assert desired(CiliumNode(), asking(eni(0, 8), **TAGS), BOTH).static_address == ""


def test_a_setback_counts_for_the_same_tags_only() -> None:
    back = setbacks.again(Setback(), "None is free.", NOW, about="pool=egress")
    state = asking(eni(0, 8), memory=Memory(static_address=back), **TAGS)
    decided = planned(state)
    assert (decided.action, decided.trouble) == (None, "None is free.")
    later = plan(state, BOTH, back.until)
    assert isinstance(later.action, AssociateAddress)
    other = msgspec.structs.replace(state.node, static_ip_tags={"pool": "other"})
    assert isinstance(planned(msgspec.structs.replace(state, node=other)).action, AssociateAddress)


def test_waits_double_up_to_ten_minutes() -> None:
    back, waits = Setback(), []
    for _ in range(8):
        back = setbacks.again(back, "why", NOW)
        waits.append(back.until - NOW)
    assert waits == [30, 60, 120, 240, 480, 600, 600, 600]
    assert setbacks.again(back, "why", NOW, shared=True).until - NOW == 60


# -- together ----------------------------------------------------------------------------------------
def test_one_after_the_other_and_then_the_pool() -> None:
    state = asking(eni(0, 5), **WANTS_IPV6, **TAGS)
    assert isinstance(planned(state).action, AssignIpv6Prefix)
    refused = Memory(ipv6=Setback(count=1, until=NOW + 30, why="No IPv6."))
    decided = planned(msgspec.structs.replace(state, memory=refused))
    assert isinstance(decided.action, AssociateAddress)
    assert decided.troubles == ("No IPv6.",)
    both = msgspec.structs.replace(
        refused, static_address=Setback(count=1, until=NOW + 30, why="None free.", about="pool=egress")
    )
    decided = planned(msgspec.structs.replace(state, memory=both))
    assert isinstance(decided.action, Assign)
    assert set(decided.troubles) == {"No IPv6.", "None free."}


def test_nothing_is_done_on_old_facts_or_while_the_instance_is_stopped() -> None:
    state = asking(eni(0, 8), **WANTS_IPV6, **TAGS)
    decided = plan(state, BOTH, NOW + 1000)
    assert (decided.action, decided.reason, decided.blocked) == (None, Reason.FACTS_TOO_OLD, True)
    stopped = msgspec.structs.replace(state, memory=Memory(not_running_until=NOW + 1))
    assert planned(stopped).action is None


@st.composite
def asking_worlds(draw: st.DrawFn) -> NodeState:
    """The planner's worlds, with IPv6 in some subnets, and nodes that ask for it and for an Elastic IP."""
    state = draw(worlds())
    subnets = {
        name: msgspec.structs.replace(each, ipv6_cidr=draw(st.sampled_from(("", "2001:db8::/64"))))
        for name, each in state.infrastructure.subnets.items()
    }
    slots = draw(st.integers(0, 3))
    interfaces = tuple(
        msgspec.structs.replace(each, ipv6_addresses=("a", "b", "c")[: draw(st.integers(0, slots))])
        for each in state.interfaces or ()
    )
    used, free = len(state.node.used), max(0, state.node.pre_allocate)
    demand = PoolDemand(ipv4=used + free, ipv6=draw(st.integers(0, 1)), pre_allocate=free)
    node = msgspec.structs.replace(
        state.node, demand=demand, static_ip_tags=draw(st.sampled_from(({}, {"pool": "egress"})))
    )
    infrastructure = msgspec.structs.replace(state.infrastructure, subnets=subnets)
    limits = msgspec.structs.replace(state.limits, ipv6_per_interface=slots, hypervisor="nitro")
    state = msgspec.structs.replace(state, node=node, infrastructure=infrastructure, limits=limits)
    return with_interfaces(state, interfaces)


def carried_out(state: NodeState, action: Any) -> NodeState:
    if isinstance(action, AssignIpv6Prefix | AssociateAddress):
        change = (
            {"ipv6_prefixes": ("2001:db8::/80",)} if isinstance(action, AssignIpv6Prefix) else {"public_address": "p"}
        )
        interfaces = (
            msgspec.structs.replace(each, **change) if each.id == action.interface_id else each
            for each in state.interfaces or ()
        )
        return with_interfaces(state, tuple(interfaces))
    after = carry_out(state, action)
    if not (isinstance(action, CreateInterface) and action.ipv6_prefix):
        return after
    *others, made = after.interfaces or ()
    return with_interfaces(after, (*others, msgspec.structs.replace(made, ipv6_prefixes=("2001:db8::/80",))))


@given(asking_worlds())
def test_steps_end_with_what_is_asked_for_or_a_reason(state: NodeState) -> None:
    for _ in range(2 * state.limits.max_interfaces + 8):  # type: ignore[union-attr]
        action = planned(state).action
        if action is None:
            break
        state = carried_out(state, action)
        interfaces = state.interfaces or ()
        assert sum(len(each.ipv6_prefixes) for each in interfaces) <= 1
        slots = state.limits.ipv6_per_interface  # type: ignore[union-attr]
        assert all(len(each.ipv6_addresses) + len(each.ipv6_prefixes) <= slots for each in interfaces)
        holders = [each for each in interfaces if each.ipv6_prefixes]
        assert all(state.infrastructure.subnets[each.subnet_id].ipv6_cidr for each in holders)
        assert (
            not isinstance(action, CreateInterface)
            or action.secondary_count
            or action.ipv6_prefix
            or (state.node.use_primary_address)
        )
    decided = planned(state)
    assert decided.action is None
    asked = state.node.demand is not None and state.node.demand.ipv6 > 0
    has_prefix = any(each.ipv6_prefixes for each in state.interfaces or ())
    assert has_prefix or bool([each for each in decided.troubles if "IPv6" in each]) == asked
    assert bool(state.node.static_ip_tags) == any(each.public_address for each in state.interfaces or ())
