"""Cilium's vectors for reading objects and EC2 items, and for what is written and accepted."""

from __future__ import annotations

import json

import msgspec
import pytest
from agent_accepts import agent_accepts
from superseded import held, ours
from vector_world import POLICY, cilium_object, known_state, load

from eni_tasks.domain import status, watermark
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.eni_entries import eni_entry
from eni_tasks.domain.interface_item import interface_from_item
from eni_tasks.model.network import Infrastructure, Interface, Limits, Subnet, Vpc
from eni_tasks.model.node import Node

M5_LARGE = Limits(instance_type="m5.large", max_interfaces=3, ipv4_per_interface=10)
ETH0 = Interface(
    id="eni-0",
    subnet_id="subnet-a",
    vpc_id="vpc-1",
    primary_address="10.0.0.4",
    device_index=0,
    attachment_status="attached",
)


UNUSED = {"disable_prefix_delegation"}  # not read until prefixes are delegated


def of_kind(file, prefix):
    return [case for case in held(file) if case.id.startswith(prefix)]


@pytest.mark.parametrize("vector", of_kind("field_mapping", ("fields-both", "fields-1.19")))
def test_effective_fields(vector):
    node = parse_node(cilium_object(vector["input"]["cilium_node"]))
    expected = ours(vector)
    expected = expected.get("effective", expected)
    expected = {key: value for key, value in expected.items() if key not in UNUSED}
    shown = {key: getattr(node, key) for key in expected}
    assert shown | {"pre_allocate": watermark.pre_allocate(node, POLICY.pre_allocate_default)} == expected


@pytest.mark.parametrize("vector", of_kind("field_mapping", "accept-"))
def test_what_agents_accept(vector):
    given = vector["input"]
    error = agent_accepts(given["status.eni.enis"], given["spec.ipam.pool"])
    assert (error is None, error) == (vector["expected"]["accepted"], vector["expected"]["error"])


def test_fields_write_pre_allocate_1_6():
    vector = vector_by_id("fields-write-pre-allocate-1.6")
    _, spec = write(cilium_object({"spec": {"eni": vector["input"]["spec_eni"]}}))
    added = {operation["path"]: operation.get("value") for operation in spec}
    (value,) = vector["expected"]["written"].values()
    assert added["/spec/eni/pre-allocate"] == value


def test_fields_write_used_empty():
    vector = vector_by_id("fields-write-used-empty")
    changes, _ = write(cilium_object({"spec": {"instance-id": "i-1"}, "status": vector["input"]["status"]}))
    added = {operation["path"]: operation.get("value") for operation in changes}
    assert added["/status/ipam/used"] == vector["expected"]["status.ipam.used"]
    assert "/status/eni/enis" in added


def write(obj):
    snapshot = known_state(parse_node(obj), (ETH0,), limits=M5_LARGE, infrastructure=infrastructure({}, {}))
    target = status.desired(obj, snapshot, POLICY)
    return status._status_changes(obj, target), status._spec_changes(obj, target)


def vector_by_id(vector_id):
    return next(vector for vector in load("field_mapping") if vector["id"] == vector_id)


def infrastructure(vpcs, subnets):
    vpcs = vpcs or {"vpc-1": {"primary-cidr": "10.0.0.0/8"}}
    subnets = subnets or {"subnet-a": {"cidr": "10.0.0.0/16"}}
    return Infrastructure(
        vpcs={
            key: Vpc(id=key, primary_cidr=vpc["primary-cidr"], secondary_cidrs=tuple(vpc.get("cidrs", ())))
            for key, vpc in vpcs.items()
        },
        subnets={
            key: Subnet(id=key, vpc_id="vpc-1", availability_zone="eu-1a", cidr=subnet["cidr"], free=9)
            for key, subnet in subnets.items()
        },
    )


@pytest.mark.parametrize("vector", held("eni_parse"))
def test_items(vector):
    given, expected = vector["input"], ours(vector)
    interface = interface_from_item(given["network_interface"])
    if expected.get("ignored"):
        assert (interface.instance_id, interface.device_index, interface.attachment_status) == ("", None, "")
    else:
        assert interface.instance_id == expected["instance_id"]
        node = Node(name="node-1", uid="uid-1", use_primary_address=given["use_primary_address"])
        changed = {key: value for key, value in expected.items() if key not in ("instance_id", "eni")}
        entry = eni_entry(interface, node, infrastructure(given["vpcs"], given["subnets"]))
        assert json.loads(msgspec.json.encode(entry)) == expected["eni"] | changed
