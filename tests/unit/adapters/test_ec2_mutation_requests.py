"""What is asked of EC2 for each mutation, and what becomes of odd answers."""

from __future__ import annotations

from typing import Any

import pytest
from unit.adapters.ec2_stubs import StubbedEc2, described

from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import ElasticIp, InstanceId, InterfaceId, SubnetId

ENI = InterfaceId("eni-1")
ATTACH = {"NetworkInterfaceId": "eni-1", "InstanceId": "i-1", "DeviceIndex": 2, "NetworkCardIndex": 1}
ASSIGN = {"NetworkInterfaceId": "eni-1", "SecondaryPrivateIpAddressCount": 2}
CREATE = {"SubnetId": "subnet-1", "Groups": ["sg-2", "sg-1"], "Description": "ours", "ClientToken": "t-1"}


@pytest.fixture
def ec2() -> StubbedEc2:
    return StubbedEc2()


def create(ec2: StubbedEc2, **changes: Any) -> Any:
    wanted: dict[str, Any] = {
        "subnet_id": SubnetId("subnet-1"),
        "secondary_count": 3,
        "security_groups": ["sg-2", "sg-1"],
        "description": "ours",
        "tags": {"owner": "us"},
        "client_token": "t-1",
    }
    return ec2.adapter.create_interface(**(wanted | changes))


def test_create_carries_token_groups_in_order_and_tags(ec2: StubbedEc2) -> None:
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "owner", "Value": "us"}]}]
    request = CREATE | {"SecondaryPrivateIpAddressCount": 3, "TagSpecifications": tags}
    ec2.expect("create_network_interface", request, {"NetworkInterface": described("eni-1") | {"Status": "pending"}})
    made = create(ec2)
    assert ec2.mutations == [True]
    assert (made.id, made.status, made.addresses) == ("eni-1", "pending", ("10.0.1.5",))


def test_create_without_tags_and_secondaries_names_neither(ec2: StubbedEc2) -> None:
    ec2.expect("create_network_interface", CREATE, {"NetworkInterface": described("eni-1")})
    create(ec2, tags={}, secondary_count=0)
    ec2.done()


def test_create_without_groups_is_not_sent(ec2: StubbedEc2) -> None:
    with pytest.raises(Ec2Error, match=r"subnet-1.*default group") as caught:
        create(ec2, security_groups=[])
    assert caught.value.reaction is Ec2Reaction.OUR_FAULT
    assert ec2.observed == []


def test_attach_names_the_card_and_answers_the_attachment(ec2: StubbedEc2) -> None:
    ec2.expect("attach_network_interface", ATTACH, {"AttachmentId": "eni-attach-9", "NetworkCardIndex": 1})
    assert ec2.adapter.attach_interface(ENI, InstanceId("i-1"), device_index=2, network_card=1) == "eni-attach-9"
    assert ec2.mutations == [True]


def test_delete_on_termination_is_set_by_attachment(ec2: StubbedEc2) -> None:
    attachment = {"AttachmentId": "eni-attach-9", "DeleteOnTermination": True}
    request = {"NetworkInterfaceId": "eni-1", "Attachment": attachment}
    ec2.expect("modify_network_interface_attribute", request, {})
    ec2.adapter.set_delete_on_termination(ENI, "eni-attach-9")
    ec2.done()
    assert ec2.mutations == [True]


def test_assign_answers_the_new_addresses(ec2: StubbedEc2) -> None:
    assigned = [{"PrivateIpAddress": "10.0.0.8"}, {"PrivateIpAddress": "10.0.0.7"}]
    answer = {"NetworkInterfaceId": "eni-1", "AssignedPrivateIpAddresses": assigned}
    ec2.expect("assign_private_ip_addresses", ASSIGN, answer)
    assert ec2.adapter.assign_addresses(ENI, 2) == ("10.0.0.8", "10.0.0.7")
    assert ec2.mutations == [True]


PREFIXES = {"NetworkInterfaceId": "eni-1", "Ipv4PrefixCount": 2}


def test_prefixes_are_asked_for_by_count_and_answered(ec2: StubbedEc2) -> None:
    assigned = [{"Ipv4Prefix": "10.0.0.32/28"}, {"Ipv4Prefix": "10.0.0.16/28"}]
    ec2.expect("assign_private_ip_addresses", PREFIXES, {"AssignedIpv4Prefixes": assigned})
    assert ec2.adapter.assign_prefixes(ENI, 2) == ("10.0.0.32/28", "10.0.0.16/28")
    item = described("eni-1") | {"Ipv4Prefixes": [{"Ipv4Prefix": "10.0.0.64/28"}]}
    ec2.expect("create_network_interface", CREATE | {"Ipv4PrefixCount": 1}, {"NetworkInterface": item})
    assert create(ec2, tags={}, secondary_count=0, prefix_count=1).prefixes == ("10.0.0.64/28",)
    assert ec2.mutations == [True, True]


@pytest.mark.parametrize(
    "assigned",
    [(), ("10.0.0.16/28",), ("10.0.0.16/28", ""), ("10.0.0.16/28", "10.0.0.0/8"), ("10.0.0.16/28", "10.0.0.40/28")],
    ids=["none", "too few", "empty", "another size", "not aligned"],
)
def test_an_answer_without_the_prefixes_is_ambiguous(ec2: StubbedEc2, assigned: tuple[str, ...]) -> None:
    answer = {"AssignedIpv4Prefixes": [{"Ipv4Prefix": prefix} for prefix in assigned]}
    ec2.expect("assign_private_ip_addresses", PREFIXES, answer)
    with pytest.raises(Ec2Error, match="eni-1") as caught:
        ec2.adapter.assign_prefixes(ENI, 2)
    assert (caught.value.code, caught.value.reaction) == ("MalformedAnswer", Ec2Reaction.AMBIGUOUS)


def send_attach(ec2: StubbedEc2) -> Any:
    return ec2.adapter.attach_interface(ENI, InstanceId("i-1"), device_index=2, network_card=1)


def send_assign(ec2: StubbedEc2) -> Any:
    return ec2.adapter.assign_addresses(ENI, 2)


ONE = {"AssignedPrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.8"}]}
WITHOUT_ADDRESS = {"AssignedPrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.8"}, {}]}


@pytest.mark.parametrize(
    ("method", "answer", "send", "names"),
    [
        ("create_network_interface", {}, create, "subnet-1"),
        ("create_network_interface", {"NetworkInterface": {"NetworkInterfaceId": "eni-1"}}, create, "eni-1"),
        ("create_network_interface", {"NetworkInterface": {"SubnetId": "subnet-1"}}, create, "without"),
        ("attach_network_interface", {}, send_attach, r"eni-1.*i-1"),
        ("assign_private_ip_addresses", {}, send_assign, r"eni-1.* 0 .*2"),
        ("assign_private_ip_addresses", ONE, send_assign, r"eni-1.* 1 .*2"),
        ("assign_private_ip_addresses", WITHOUT_ADDRESS, send_assign, r"eni-1.* 1 .*2"),
    ],
    ids=[
        "create-empty",
        "create-no-ipv4",
        "create-no-id",
        "attach-empty",
        "assign-empty",
        "assign-short",
        "assign-gap",
    ],
)
def test_an_answer_that_lacks_something_is_ambiguous(
    ec2: StubbedEc2, method: str, answer: dict[str, Any], send: Any, names: str
) -> None:
    request = {"attach_network_interface": ATTACH, "assign_private_ip_addresses": ASSIGN}.get(method)
    ec2._stubber.add_response(method, answer, request)
    with pytest.raises(Ec2Error, match=names) as caught:
        send(ec2)
    assert (caught.value.code, caught.value.reaction) == ("MalformedAnswer", Ec2Reaction.AMBIGUOUS)


def test_a_delete_is_done_when_the_interface_is_gone(ec2: StubbedEc2) -> None:
    method, gone = "delete_network_interface", "InvalidNetworkInterfaceID.NotFound"
    ec2.expect(method, {"NetworkInterfaceId": "eni-1"}, {})
    ec2.adapter.delete_interface(ENI)
    ec2.refuse(method, gone)
    ec2.adapter.delete_interface(ENI)
    assert ec2.mutations == [True, True]
    assert [code for _, code in ec2.observed] == ["OK", gone]
    ec2.refuse(method, "InvalidParameterValue", "Network interface 'eni-1' is currently in use.")
    with pytest.raises(Ec2Error) as caught:
        ec2.adapter.delete_interface(ENI)
    assert caught.value.reaction is Ec2Reaction.STALE_VIEW


def test_create_with_an_ipv6_prefix(ec2: StubbedEc2) -> None:
    answer = described("eni-1") | {"Ipv6Prefixes": [{"Ipv6Prefix": "2001:db8:0:1:1::/80"}]}
    ec2.expect("create_network_interface", CREATE | {"Ipv6PrefixCount": 1}, {"NetworkInterface": answer})
    made = create(ec2, tags={}, secondary_count=0, ipv6_prefix=True)
    assert made.ipv6_prefixes == ("2001:db8:0:1:1::/80",)


ASSIGN_IPV6 = {"NetworkInterfaceId": "eni-1", "Ipv6PrefixCount": 1}


def test_an_ipv6_prefix_is_answered(ec2: StubbedEc2) -> None:
    ec2.expect("assign_ipv6_addresses", ASSIGN_IPV6, {"AssignedIpv6Prefixes": ["2001:db8:0:1:1::/80"]})
    assert ec2.adapter.assign_ipv6_prefix(ENI) == "2001:db8:0:1:1::/80"
    assert ec2.mutations == [True]


@pytest.mark.parametrize("prefixes", [[], ["2001:db8:0:1:1::/80", "2001:db8:0:1:2::/80"]], ids=["none", "two"])
def test_another_number_of_ipv6_prefixes_is_ambiguous(ec2: StubbedEc2, prefixes: list[str]) -> None:
    ec2.expect("assign_ipv6_addresses", ASSIGN_IPV6, {"AssignedIpv6Prefixes": prefixes})
    with pytest.raises(Ec2Error, match=f"names {len(prefixes)} prefixes, not 1") as caught:
        ec2.adapter.assign_ipv6_prefix(ENI)
    assert caught.value.reaction is Ec2Reaction.AMBIGUOUS


def test_an_elastic_ip_is_never_taken_from_where_it_is(ec2: StubbedEc2) -> None:
    request = {
        "AllocationId": "eipalloc-1",
        "NetworkInterfaceId": "eni-1",
        "PrivateIpAddress": "10.0.0.4",
        "AllowReassociation": False,
    }
    ec2.expect("associate_address", request, {"AssociationId": "eipassoc-1"})
    ec2.adapter.associate_address(ElasticIp(id="eipalloc-1", address="198.18.0.1"), ENI, "10.0.0.4")
    assert ec2.mutations == [True]
