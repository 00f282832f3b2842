"""Cilium's vectors for the place and the groups of a new interface."""

from __future__ import annotations

import pytest
from superseded import held, ours
from vector_world import POLICY, cilium_object, infrastructure, interfaces, known_state, limits

from eni_tasks.domain import subnets
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.creation import security_groups
from eni_tasks.model.network import Limits
from eni_tasks.model.plan import Blocked, Reason

M5_LARGE = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10)


def world(spec_eni, ec2, found_limits=M5_LARGE, enis=()):
    node = parse_node(cilium_object({"spec": {"instance-id": "i-1", "eni": spec_eni}}))
    return known_state(node, interfaces(list(enis)), limits=found_limits, infrastructure=infrastructure(ec2))


def chosen(given):
    return subnets.choose(given, POLICY, given.limits)


@pytest.mark.parametrize("vector", held("subnet_choice", function="by_tags") + held("subnet_choice", function="by_ids"))
def test_selectors(vector):
    given, expected = vector["input"], ours(vector)
    place = {"vpc-id": given["vpc"], "availability-zone": given["az"]}
    selector = {"subnet-tags": given.get("required_tags", {}), "subnet-ids": given.get("ids", [])}
    choice = chosen(world(place | selector, given))
    if expected["recommended"] is None:
        matched_but_full = vector["expected"]["recommended"] is not None
        assert choice.reason == (Reason.NO_SUBNET if matched_but_full else Reason.NO_SELECTED_SUBNET)
    else:
        assert choice.subnet.id == expected["recommended"]


@pytest.mark.parametrize("vector", held("subnet_choice", function="suitable"))
def test_chain(vector):
    given, expected = vector["input"], ours(vector)
    choice = chosen(world(given["spec_eni"], given, limits("any", given["limits"])))
    if expected["recommended"] is None:
        assert choice.reason == Reason.NO_SUBNET
    else:
        assert (choice.subnet.id, choice.rule) == (expected["recommended"], expected["rule"])


@pytest.mark.parametrize("vector", held("subnet_choice", function="same_route_table"))
def test_same_route_table(vector):
    given = vector["input"]
    here = world(given["spec_eni"], given)
    tables = here.infrastructure.route_tables
    shared = subnets.share_route_table(here.node.node_subnet_id, given["subnet"], tables, here.node)
    assert shared is ours(vector)["same"]


@pytest.mark.parametrize("vector", held("security_groups"))
def test_security_groups(vector):
    given, expected = vector["input"], ours(vector)
    groups = security_groups(world(given["spec_eni"], given, enis=given["enis"]), POLICY)
    if expected["error"]:
        assert isinstance(groups, Blocked)
        assert groups.reason == Reason.NO_SECURITY_GROUP
    elif vector["semantics"] == "1.6" and "security-groups" not in given["spec_eni"]:
        assert sorted(groups) == sorted(expected["groups"])
    else:
        assert list(groups) == expected["groups"]
