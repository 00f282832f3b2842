"""Agents of Cilium 1.20: how many addresses they use is read from what they ask for."""

from __future__ import annotations

import msgspec
import pytest
from vector_world import cases, cilium_object, load, required

from eni_tasks.domain import watermark
from eni_tasks.domain.addresses import may_use
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.pool_demand import REQUEST_SECONDS, asked_before_change, covered, with_earlier_pre_allocate
from eni_tasks.model.cilium_node import EarlierPreAllocate

VECTORS = [*load("multipool"), *load("multipool-1.20")]


@pytest.mark.parametrize("vector", cases([each for each in VECTORS if each["category"] == "detect"]))
def test_who_is_at_work_and_what_is_used(vector):
    given, expected = vector["input"], required(vector)
    obj = cilium_object(given["cilium_node"])
    if asked_with := given.get("request_made_with_pre_allocate"):
        obj = msgspec.structs.replace(obj, requested_with=EarlierPreAllocate(pre_allocate=asked_with, until=1.0))
    node = parse_node(obj)
    shown = {"multi_pool": node.demand is not None, "used": watermark.used_count(node)}
    if "needed" in expected:
        shown["needed"] = watermark.needed(
            available=given["available"],
            used=shown["used"],
            pre_allocate=watermark.pre_allocate(node, 8),
            min_allocate=0,
            cap=None,
        )
    assert shown == {key: expected[key] for key in shown}


def asking(ipv4=20, *, pre_allocate=8, used=(), listed=(), **needed):
    pools = {"requested": [{"pool": "default", "needed": {"ipv4-addrs": ipv4} | needed}]}
    pools["allocated"] = [{"pool": "default", "cidrs": list(listed)}, {"pool": "other", "cidrs": ["10.9.0.0/28"]}]
    spec = {"instance-id": "i-1", "ipam": {"pre-allocate": pre_allocate, "pools": pools}}
    return cilium_object({"spec": spec, "status": {"ipam": {"used": {address: {} for address in used}}}})


def test_a_request_is_read_with_the_pre_allocate_that_it_was_made_with():
    before, after = asking(), asking(pre_allocate=16)
    assert asked_before_change(after, before)
    noted = with_earlier_pre_allocate(after, before, now=100.0)
    assert watermark.used_count(parse_node(noted, now=100.0)) == 12
    assert parse_node(noted, now=100.0).demand.changing
    # The note survives other changes of the object, with its time.
    assert asked_before_change(after, noted)
    assert with_earlier_pre_allocate(after, noted, now=130.0).requested_with == noted.requested_with
    # By then the agent has computed its request again, and it came out the same.
    assert watermark.used_count(parse_node(noted, now=100.0 + REQUEST_SECONDS)) == 4


def test_a_new_request_or_the_old_figure_ends_the_note():
    noted = with_earlier_pre_allocate(asking(pre_allocate=16), asking(), now=100.0)
    assert not asked_before_change(asking(28, pre_allocate=16), noted)
    assert with_earlier_pre_allocate(asking(), noted, now=110.0).requested_with is None
    other_machine = msgspec.structs.replace(noted, metadata=msgspec.structs.replace(noted.metadata, uid="other"))
    assert not asked_before_change(asking(pre_allocate=16), other_machine)


def test_an_agent_without_figure_asked_with_its_own_default():
    before, filled_in = asking(10, pre_allocate=0), asking(10, pre_allocate=3)
    noted = with_earlier_pre_allocate(filled_in, before, now=100.0)
    assert watermark.used_count(parse_node(noted, now=100.0)) == 2


@pytest.mark.parametrize(
    ("ipv4", "ipv6", "wanted"), [(0, 8, 0), (8, 8, 8), (0, 0, 8)], ids=["IPv6 only", "both", "nothing yet"]
)
def test_an_agent_that_asks_only_for_ipv6_gets_no_spare_ipv4(ipv4, ipv6, wanted):
    node = parse_node(asking(ipv4, **{"ipv6-addrs": ipv6}))
    assert (watermark.used_count(node), watermark.pre_allocate(node, 8)) == (0, wanted)


def test_absurd_requests_ask_for_nothing_below_zero():
    assert watermark.used_count(parse_node(asking(-5))) == 0


def test_what_an_agent_lists_may_be_in_use():
    node = parse_node(asking(listed=["10.0.1.16/28", "10.0.0.9/32", "2001:db8::/80", "no block", "10.0.1.1/28"]))
    assert node.demand.listed == {"10.0.1.16/28", "10.0.0.9/32", "2001:db8::/80"}
    addresses = ["10.0.1.15", "10.0.1.16", "10.0.1.31", "10.0.1.32", "10.0.0.9", "10.0.0.8", "10.9.0.1"]
    assert may_use(node, addresses) == {"10.0.1.16", "10.0.1.31", "10.0.0.9"}


def test_what_an_older_agent_reports_is_in_use():
    node = parse_node(asking(used=["10.0.0.9"], listed=["10.0.1.16/28"]))
    assert may_use(node, ["10.0.0.9", "10.0.1.16"]) == {"10.0.0.9"}


def test_a_huge_block_is_not_expanded():
    assert covered(["10.1.2.3", "11.0.0.1"], ["10.0.0.0/8"]) == {"10.1.2.3"}
