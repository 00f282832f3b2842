"""Objects and items that cannot be meant are refused by name; the rest is read."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_world import cilium_object, decoded

from eni_tasks.domain.cilium_node import decode_node, machine_of, parse_node
from eni_tasks.domain.interface_item import interface_from_item
from eni_tasks.errors import InvalidInput


def node(spec=None, status=None, metadata=None):
    partial = {"spec": spec or {}, "status": status or {}, "metadata": metadata or {}}
    return parse_node(cilium_object(partial))


@pytest.mark.parametrize(
    ("spec", "status", "field"),
    [
        ({"ipam": {"pre-allocate": -1}}, {}, "spec.ipam.pre-allocate"),
        ({"ipam": {"pre-allocate": 10**12}}, {}, "spec.ipam.pre-allocate"),
        ({"ipam": {"min-allocate": "8"}}, {}, "spec.ipam.min-allocate"),
        ({"ipam": {"max-allocate": True}}, {}, "spec.ipam.max-allocate"),
        ({"ipam": {"max-above-watermark": 1.5}}, {}, "spec.ipam.max-above-watermark"),
        ({"eni": {"min-allocate": -5}}, {}, "spec.eni.min-allocate"),
        ({"eni": {"first-interface-index": -1}}, {}, "spec.eni.first-interface-index"),
        ({"eni": {"delete-on-termination": "yes"}}, {}, "spec.eni.delete-on-termination"),
        ({"eni": {"subnet-ids": "subnet-a"}}, {}, "spec.eni.subnet-ids"),
        ({"eni": {"security-groups": [1]}}, {}, "spec.eni.security-groups[0]"),
        ({"eni": {"subnet-tags": {"a": 1}}}, {}, "spec.eni.subnet-tags[...]"),
        ({"eni": {"subnet-tags": {"Name": "pods\x1b[2J"}}}, {}, "spec.eni.subnet-tags[...]"),
        ({"eni": {"security-group-tags": {"a" * 257: "b"}}}, {}, "spec.eni.security-group-tags"),
        ({"eni": []}, {}, "spec.eni"),
        ({"instance-id": "*"}, {}, "spec.instance-id"),
        ({"instance-id": "i-1 i-2"}, {}, "spec.instance-id"),
        ({"instance-id": 1}, {}, "spec.instance-id"),
        ({"eni": {"instance-id": "1"}}, {}, "spec.eni.instance-id"),
        ({}, {"ipam": {"used": ["10.0.0.1"]}}, "status.ipam.used"),
        ({"instance-id": "i-" + "0" * 31}, {}, "spec.instance-id"),
        ({"instance-id": "i-1\n"}, {}, "spec.instance-id"),
        ({"eni": {"instance-type": "m5.large m5.xlarge"}}, {}, "spec.eni.instance-type"),
        ({"eni": {"vpc-id": "v" * 65}}, {}, "spec.eni.vpc-id"),
        ({"eni": {"availability-zone": "*"}}, {}, "spec.eni.availability-zone"),
        ({"eni": {"node-subnet-id": "subnet-?"}}, {}, "spec.eni.node-subnet-id"),
        ({"eni": {"subnet-ids": ["subnet-a", "s" * 200_000]}}, {}, "spec.eni.subnet-ids[1]"),
        ({"ipam": {"pool": {"10.0.0.1": "eni-1"}}}, {}, "spec.ipam.pool[...]"),
        ({}, {"eni": {"enis": {"eni-1": {"number": "1"}}}}, "status.eni.enis[...].number"),
    ],
)
def test_absurd_values_are_refused_with_node_and_field(spec, status, field):
    with pytest.raises(InvalidInput, match=r"CiliumNode node-1: .*`\$\." + re.escape(field) + "`"):
        node(spec, status)


@pytest.mark.parametrize("obj", [{}, {"metadata": {"uid": "u"}}, {"metadata": {"name": "node-1"}}, {"metadata": "x"}])
def test_an_object_without_identity_is_refused(obj):
    with pytest.raises(InvalidInput):
        parse_node(decoded(obj))


def test_the_whole_object_is_read():
    read = node(
        spec={
            "instance-id": "i-0abc",
            "eni": {
                "instance-type": "m5.large",
                "vpc-id": "vpc-1",
                "availability-zone": "eu-1a",
                "node-subnet-id": "subnet-n",
                "subnet-ids": ["subnet-a"],
                "exclude-interface-tags": {"a": "1"},
            },
            "ipam": {
                "pool": {"10.0.0.1": {"resource": "eni-1"}},
            },
        },
        status={
            "ipam": {
                "used": {"10.0.0.1": {"owner": "default/pod"}, "10.0.0.9": {}},
            }
        },
        metadata={"resourceVersion": "42", "deletionTimestamp": "2024-01-01T00:00:00Z"},
    )
    assert (read.name, read.uid) == ("node-1", "uid-1")
    assert (read.instance_id, read.instance_type, read.node_subnet_id) == ("i-0abc", "m5.large", "subnet-n")
    assert (read.subnet_ids, read.exclude_interface_tags) == (("subnet-a",), {"a": "1"})
    assert read.used == {"10.0.0.1", "10.0.0.9"}
    assert read.pool == {"10.0.0.1": "eni-1"}
    assert (read.deleting, read.ignored) == (True, False)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"eni": {"instance-id": "i-1"}}, "i-1", id="an agent of 1.6"),
        pytest.param({"instance-id": "i-2", "eni": {"instance-id": "i-1"}}, "i-2", id="a later agent"),
        pytest.param({"instance-id": ""}, "", id="not known yet"),
        pytest.param({"instance-id": None, "eni": None, "ipam": None}, "", id="null is absent"),
    ],
)
def test_generations(spec, expected):
    assert node(spec).instance_id == expected


def test_an_object_that_is_not_understood_keeps_its_identity_and_nothing_else():
    obj = cilium_object({"spec": {"instance-id": "i-1", "ipam": {"pre-allocate": "8"}}, "metadata": {"annotations": 1}})
    assert (obj.metadata.name, obj.metadata.uid, obj.metadata.resource_version) == ("node-1", "uid-1", "1")
    assert (obj.spec, obj.status, machine_of(obj)) == (None, None, ("", ""))


KEYS = ("instance-id", "eni", "ipam", "enis", "pool", "used", "pre-allocate", "subnet-ids", "subnet-tags", "vpc", "x")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
)


@given(spec=ANYTHING, status=ANYTHING, annotations=ANYTHING)
def test_whatever_an_object_holds_it_keeps_its_name_and_is_read_or_refused(spec, status, annotations):
    metadata = {"name": "node-1", "uid": "uid-1", "resourceVersion": "1", "annotations": annotations}
    obj = decoded({"metadata": metadata, "spec": spec, "status": status})
    assert (obj.metadata.name, obj.metadata.uid, obj.metadata.resource_version) == ("node-1", "uid-1", "1")
    assert decode_node(msgspec.json.encode(obj)) == obj, "as it comes back from Redis"
    if obj.problem:
        with pytest.raises(InvalidInput, match=r"CiliumNode node-1: .* `\$\."):
            parse_node(obj)
    else:
        assert parse_node(obj).uid == "uid-1"


def test_a_large_but_legal_wish_is_read_as_it_is():
    assert node({"ipam": {"min-allocate": 2_000_000}}).min_allocate == 2_000_000


def test_annotated_nodes_are_ignored():
    assert node(metadata={"annotations": {"ipam.cilium.io/ignore": "true"}}).ignored
    assert not node(metadata={"annotations": {"ipam.cilium.io/ignore": "false"}}).ignored


ITEM = {
    "NetworkInterfaceId": "eni-1",
    "PrivateIpAddress": "10.1.0.4",
    "Status": "in-use",
    "OwnerId": "111111111111",
    "RequesterManaged": True,
    "Attachment": {
        "InstanceId": "i-1",
        "DeviceIndex": 2,
        "NetworkCardIndex": 1,
        "Status": "detaching",
        "DeleteOnTermination": True,
    },
}


def test_the_attachment_is_read():
    read = interface_from_item(ITEM)
    assert (read.device_index, read.network_card, read.attachment_status) == (2, 1, "detaching")
    assert (read.delete_on_termination, read.requester_managed, read.owner_id) == (True, True, "111111111111")


@pytest.mark.parametrize(
    "change",
    [
        {"Attachment": "eni-attach-1"},
        {"Attachment": {"DeviceIndex": "1"}},
        {"PrivateIpAddresses": ["10.1.0.4"]},
        {"Groups": {"GroupId": "sg-1"}},
        {"Ipv4Prefixes": [{"Ipv4Prefix": "10.1.0.1/28"}]},
    ],
)
def test_a_malformed_item_is_refused_by_its_id(change):
    with pytest.raises(InvalidInput, match="eni-1"):
        interface_from_item(ITEM | change)


def test_an_item_without_id_is_refused():
    with pytest.raises(InvalidInput):
        interface_from_item({"PrivateIpAddress": "10.1.0.4"})
