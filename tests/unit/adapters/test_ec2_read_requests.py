"""What is asked of EC2 for each read, and what becomes of pages, batches and odd answers."""

from __future__ import annotations

from typing import Any

import pytest
from unit.adapters.ec2_stubs import StubbedEc2, described, names

from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InstanceId, InterfaceId, Limits, VpcId

PAGE = {"MaxResults": 1000}


@pytest.fixture
def ec2() -> StubbedEc2:
    return StubbedEc2()


def interfaces_request(*instance_ids: str, **more: str) -> dict[str, Any]:
    return {"Filters": [names("attachment.instance-id", *instance_ids)], **PAGE, **more}


def test_interfaces_of_sees_all_pages_and_names_instances_without_interfaces(ec2: StubbedEc2) -> None:
    ids = ("i-1", "i-2", "i-3")
    ec2.expect(
        "describe_network_interfaces",
        interfaces_request(*ids),
        {"NetworkInterfaces": [described("eni-1")], "NextToken": "2"},
    )
    ec2.expect(
        "describe_network_interfaces",
        interfaces_request(*ids, NextToken="2"),
        {"NetworkInterfaces": [described("eni-2", "i-2")], "NextToken": "3"},
    )
    ec2.expect(
        "describe_network_interfaces",
        interfaces_request(*ids, NextToken="3"),
        {"NetworkInterfaces": [described("eni-3", index=2)], "NextToken": ""},
    )
    found = ec2.adapter.interfaces_of([InstanceId(each) for each in ids])
    assert {instance: [each.id for each in interfaces] for instance, interfaces in found.items()} == {
        "i-1": ["eni-1", "eni-3"],
        "i-2": ["eni-2"],
        "i-3": [],
    }
    assert found[InstanceId("i-1")][0].addresses == ("10.0.1.5",)
    assert ec2.observed == [("DescribeNetworkInterfaces", "OK")] * 3
    assert ec2.mutations == [False] * 3


def test_a_failing_page_fails_the_whole_read(ec2: StubbedEc2) -> None:
    answer = {"NetworkInterfaces": [described("eni-1")], "NextToken": "2"}
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), answer)
    ec2.refuse("describe_network_interfaces", "RequestLimitExceeded", status=503)
    with pytest.raises(Ec2Error) as caught:
        ec2.adapter.interfaces_of([InstanceId("i-1")])
    assert caught.value.reaction is Ec2Reaction.RETRY_LATER
    assert ec2.observed[1] == ("DescribeNetworkInterfaces", "RequestLimitExceeded")


@pytest.mark.parametrize("code", ["InvalidNextToken", "InvalidPaginationToken"])
def test_a_forgotten_listing_starts_again_once_and_keeps_nothing_of_the_first_try(ec2: StubbedEc2, code: str) -> None:
    begin = {"NetworkInterfaces": [described("eni-1")], "NextToken": "2"}
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), begin)
    ec2.refuse("describe_network_interfaces", code)
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), {"NetworkInterfaces": [described("eni-1")]})
    assert len(ec2.adapter.interfaces_of([InstanceId("i-1")])[InstanceId("i-1")]) == 1
    for _ in range(2):
        ec2.expect("describe_network_interfaces", interfaces_request("i-1"), begin)
        ec2.refuse("describe_network_interfaces", code)
    with pytest.raises(Ec2Error, match=code):
        ec2.adapter.interfaces_of([InstanceId("i-1")])
    ec2.done()


@pytest.mark.parametrize(
    ("answer", "says"),
    [({}, "has no NetworkInterfaces"), ({"NetworkInterfaces": [], "NextToken": "2"}, "repeats its NextToken")],
    ids=["no-list", "endless"],
)
def test_a_listing_that_makes_no_sense_is_no_empty_listing(ec2: StubbedEc2, answer: dict[str, Any], says: str) -> None:
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), answer)
    ec2.expect("describe_network_interfaces", interfaces_request("i-1", NextToken="2"), answer)
    with pytest.raises(Ec2Error, match=says) as caught:
        ec2.adapter.interfaces_of([InstanceId("i-1")])
    assert (caught.value.code, caught.value.reaction) == ("MalformedAnswer", Ec2Reaction.RETRY_LATER)


def test_201_instances_are_two_requests_and_a_repeated_one_is_asked_for_once(ec2: StubbedEc2) -> None:
    ids = [f"i-{number}" for number in range(201)]
    ec2.expect("describe_network_interfaces", interfaces_request(*ids[:200]), {"NetworkInterfaces": []})
    ec2.expect("describe_network_interfaces", interfaces_request(ids[200]), {"NetworkInterfaces": []})
    found = ec2.adapter.interfaces_of([InstanceId(each) for each in [*ids, "i-7"]])
    assert found == dict.fromkeys(ids, ())


def test_an_id_that_a_filter_takes_for_many_is_never_sent(ec2: StubbedEc2) -> None:
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), {"NetworkInterfaces": []})
    assert ec2.adapter.interfaces_of([InstanceId(each) for each in ("", "i-1", "i-*", "i-?", "i-\\")]) == {"i-1": ()}


def unattached(number: int, **more: Any) -> dict[str, Any]:
    item = {key: value for key, value in described(f"eni-{number}").items() if key != "Attachment"}
    return item | {"Status": "available", "TagSet": [{"Key": "ours", "Value": "yes"}]} | more


def test_b05_unattached_interfaces_are_asked_for_by_their_own_tags_and_vpcs_all_pages(ec2: StubbedEc2) -> None:
    filters = [
        names("status", "available"),
        names("vpc-id", "vpc-1", "vpc-2"),
        names("tag:ours", "yes"),
        names("tag:of", "c1"),
    ]
    pages, sent = (24, 25, 11), 0
    for number, size in enumerate(pages):
        items = [unattached(each) for each in range(sent, sent + size)]
        token = {"NextToken": str(number)} if number else {}
        following = {"NextToken": str(number + 1)} if size != pages[-1] else {}
        request = {"Filters": filters, **PAGE, **token}
        ec2.expect("describe_network_interfaces", request, {"NetworkInterfaces": items, **following})
        sent += size
    found = ec2.adapter.unattached_interfaces({"ours": "yes", "of": "c1"}, [VpcId("vpc-1"), VpcId("vpc-2")])
    assert [each.id for each in found] == [f"eni-{number}" for number in range(60)]
    assert (found[0].status, found[0].attachment_id, found[0].tags) == ("available", "", {"ours": "yes"})
    ec2.done()


def test_an_unattached_interface_that_cannot_be_understood_is_left_alone(ec2: StubbedEc2) -> None:
    request = {"Filters": [names("status", "available"), names("vpc-id", "vpc-1"), names("tag:ours", "yes")], **PAGE}
    odd = [unattached(2, NetworkInterfaceId=""), unattached(3, PrivateIpAddresses=[{"Primary": True}])]
    ec2.expect("describe_network_interfaces", request, {"NetworkInterfaces": [unattached(1), *odd]})
    assert [each.id for each in ec2.adapter.unattached_interfaces({"ours": "yes"}, [VpcId("vpc-1")])] == ["eni-1"]
    assert len(ec2.warned) == 2


def test_nothing_asked_is_nothing_sent(ec2: StubbedEc2) -> None:
    assert ec2.adapter.interfaces_of([]) == {}
    assert ec2.adapter.interfaces_of([InstanceId("")]) == {}
    assert ec2.adapter.interfaces_by_id([]) == {}
    assert ec2.adapter.tagged_instances({}) == frozenset()
    assert ec2.adapter.unattached_interfaces({}, [VpcId("vpc-1")]) == ()
    assert ec2.adapter.unattached_interfaces({"ours": "yes"}, []) == ()
    assert ec2.adapter.infrastructure([]).subnets == {}
    assert ec2.adapter.limits([]) == {}
    assert ec2.observed == []


def malformed(interface_id: str, **changes: Any) -> dict[str, Any]:
    return described(interface_id) | {"Ipv4Prefixes": [{"Ipv4Prefix": "10.0.0.1/28"}]} | changes


def test_an_item_that_cannot_be_understood_leaves_out_its_instance_alone(ec2: StubbedEc2) -> None:
    items = [described("eni-1"), malformed("eni-2"), described("eni-3"), described("eni-4", "i-2")]
    ec2.expect("describe_network_interfaces", interfaces_request("i-1", "i-2"), {"NetworkInterfaces": items})
    found = ec2.adapter.interfaces_of([InstanceId("i-1"), InstanceId("i-2")])
    assert [each.id for each in found[InstanceId("i-2")]] == ["eni-4"]
    assert "eni-2" in str(found[InstanceId("i-1")])
    assert len(ec2.warned) == 1
    assert "i-1" in ec2.warned[0]
    assert "eni-2" in ec2.warned[0]


def test_an_item_of_nobody_knows_whom_makes_the_read_worthless(ec2: StubbedEc2) -> None:
    answer = {"NetworkInterfaces": [described("eni-1"), malformed("eni-2", Attachment={})]}
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), answer)
    with pytest.raises(Ec2Error, match="eni-2"):
        ec2.adapter.interfaces_of([InstanceId("i-1")])


def test_interfaces_of_others_are_not_counted(ec2: StubbedEc2) -> None:
    answer = {"NetworkInterfaces": [described("eni-2", "i-other")]}
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), answer)
    assert ec2.adapter.interfaces_of([InstanceId("i-1")]) == {"i-1": ()}


def test_an_interface_without_ipv4_is_counted(ec2: StubbedEc2) -> None:
    ipv6_only = described("eni-9") | {"PrivateIpAddresses": []}
    del ipv6_only["PrivateIpAddress"]
    ec2.expect("describe_network_interfaces", interfaces_request("i-1"), {"NetworkInterfaces": [ipv6_only]})
    (found,) = ec2.adapter.interfaces_of([InstanceId("i-1")])[InstanceId("i-1")]
    assert (found.id, found.primary_address, found.device_index) == ("eni-9", "", 1)


def test_interfaces_by_id_asks_by_filter_in_batches(ec2: StubbedEc2) -> None:
    ids = [f"eni-{number}" for number in range(201)]
    request = {"Filters": [names("network-interface-id", *ids[:200])], **PAGE}
    ec2.expect("describe_network_interfaces", request, {"NetworkInterfaces": [described("eni-1")]})
    request = {"Filters": [names("network-interface-id", ids[200])], **PAGE}
    ec2.expect("describe_network_interfaces", request, {"NetworkInterfaces": []})
    assert list(ec2.adapter.interfaces_by_id([InterfaceId(each) for each in ids])) == ["eni-1"]


def test_an_interface_that_is_there_is_never_told_as_absent(ec2: StubbedEc2) -> None:
    request = {"Filters": [names("network-interface-id", "eni-1")], **PAGE}
    ec2.expect("describe_network_interfaces", request, {"NetworkInterfaces": [malformed("eni-1")]})
    with pytest.raises(Ec2Error, match="eni-1") as caught:
        ec2.adapter.interfaces_by_id([InterfaceId("eni-1")])
    assert caught.value.reaction is Ec2Reaction.RETRY_LATER


def test_tagged_instances_asks_for_all_tags(ec2: StubbedEc2) -> None:
    request = {"Filters": [names("tag:team", "net"), names("tag:env", "prod")], **PAGE}
    reservations = [{"Instances": [{"InstanceId": "i-1"}, {"InstanceId": "i-2"}]}, {"Instances": []}]
    ec2.expect("describe_instances", request, {"Reservations": reservations, "NextToken": "2"})
    request = request | {"NextToken": "2"}
    ec2.expect("describe_instances", request, {"Reservations": [{"Instances": [{"InstanceId": "i-3"}]}]})
    assert ec2.adapter.tagged_instances({"team": "net", "env": "prod"}) == {"i-1", "i-2", "i-3"}


def test_infrastructure_is_read_by_vpc_and_leaves_out_what_lacks_a_field(ec2: StubbedEc2) -> None:
    request = {"Filters": [names("vpc-id", "vpc-1")], **PAGE}
    states = {"10.0.0.0": "associated", "100.64.0.0": "associated", "100.65.0.0": "failed", "100.66.0.0": "associating"}
    blocks = [{"CidrBlock": f"{block}/16", "CidrBlockState": {"State": state}} for block, state in states.items()]
    vpc = {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16", "CidrBlockAssociationSet": blocks}
    ec2.expect("describe_vpcs", request, {"Vpcs": [vpc]})
    subnet = {
        "SubnetId": "subnet-1",
        "VpcId": "vpc-1",
        "AvailabilityZone": "eu-west-1a",
        "CidrBlock": "10.0.1.0/24",
        "AvailableIpAddressCount": 9,
        "Tags": [{"Key": "purpose", "Value": "pods"}],
    }
    ec2.expect("describe_subnets", request, {"Subnets": [subnet, {"SubnetId": "subnet-2", "VpcId": "vpc-1"}]})
    group = {"GroupId": "sg-1", "VpcId": "vpc-1", "Tags": [{"Key": "a", "Value": "b"}]}
    ec2.expect("describe_security_groups", request, {"SecurityGroups": [group]})
    associations = [
        {"Main": True, "AssociationState": {"State": "associated"}},
        {"SubnetId": "subnet-1", "AssociationState": {"State": "associated"}},
        {"SubnetId": "subnet-2", "AssociationState": {"State": "disassociating"}},
    ]
    table = {"RouteTableId": "rtb-1", "VpcId": "vpc-1", "Associations": associations}
    ec2.expect("describe_route_tables", request | {"MaxResults": 100}, {"RouteTables": [table]})
    read = ec2.adapter.infrastructure([VpcId("vpc-1"), VpcId("")])
    assert read.vpcs["vpc-1"].secondary_cidrs == ("100.64.0.0/16",)
    assert list(read.subnets) == ["subnet-1"]
    assert (read.subnets["subnet-1"].free, read.subnets["subnet-1"].tags) == (9, {"purpose": "pods"})
    assert read.security_groups["sg-1"].tags == {"a": "b"}
    assert read.route_tables[0].subnet_ids == ("subnet-1",)
    assert read.described_at == 0
    assert ec2.warned == ["left out: subnet subnet-2 has no AvailabilityZone"]


def described_type(name: str, **network: Any) -> dict[str, Any]:
    card = {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 8}
    other = {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 7}
    info = {
        "MaximumNetworkInterfaces": 15,
        "DefaultNetworkCardIndex": 0,
        "NetworkCards": [other, card],
        "Ipv4AddressesPerInterface": 50,
        "Ipv6AddressesPerInterface": 49,
    }
    return {"InstanceType": name, "Hypervisor": "nitro", "BareMetal": False, "NetworkInfo": info | network}


def test_limits_are_those_of_the_card_that_we_attach_to(ec2: StubbedEc2) -> None:
    asked, answer = {"InstanceTypes": ["c6in.32xlarge"]}, {"InstanceTypes": [described_type("c6in.32xlarge")]}
    ec2.expect("describe_instance_types", asked, answer)
    assert ec2.adapter.limits(["c6in.32xlarge"]) == {
        "c6in.32xlarge": Limits(
            instance_type="c6in.32xlarge",
            max_interfaces=8,
            ipv4_per_interface=50,
            ipv6_per_interface=49,
            hypervisor="nitro",
        )
    }


def test_unknown_types_are_dropped_and_the_rest_is_asked_for_again(ec2: StubbedEc2) -> None:
    text = "The following supplied instance types do not exist: [m99.large, zz1.metal-x]"
    ec2.refuse("describe_instance_types", "InvalidInstanceType", text)
    rest = {"InstanceTypes": ["m5.large", "m99.large2"]}
    ec2.expect("describe_instance_types", rest, {"InstanceTypes": [described_type("m5.large")]})
    names_asked = ["m99.large", "m5.large", "zz1.metal-x", "m99.large2", "", "no type", "m5.large"]
    assert list(ec2.adapter.limits(names_asked)) == ["m5.large"]


def test_only_unknown_types_are_no_answer_and_no_error(ec2: StubbedEc2) -> None:
    ec2.refuse("describe_instance_types", "InvalidInstanceType", "do not exist: [m99.large]")
    assert ec2.adapter.limits(["m99.large"]) == {}


def test_a_refusal_that_names_no_type_is_raised(ec2: StubbedEc2) -> None:
    ec2.refuse("describe_instance_types", "InvalidInstanceType", "something else")
    with pytest.raises(Ec2Error, match="something else"):
        ec2.adapter.limits(["m5.large"])


def test_101_types_are_two_requests(ec2: StubbedEc2) -> None:
    types = [f"m{number}.large" for number in range(101)]
    ec2.expect("describe_instance_types", {"InstanceTypes": types[:100]}, {"InstanceTypes": []})
    ec2.expect("describe_instance_types", {"InstanceTypes": types[100:]}, {"InstanceTypes": []})
    assert ec2.adapter.limits(types) == {}
    ec2.done()


@pytest.mark.parametrize("network", [{"NetworkCards": []}, {"DefaultNetworkCardIndex": 3}], ids=["no-card", "other"])
def test_a_type_without_its_card_is_unknown(ec2: StubbedEc2, network: dict[str, Any]) -> None:
    answer = {"InstanceTypes": [described_type("m5.large", **network)]}
    ec2.expect("describe_instance_types", {"InstanceTypes": ["m5.large"]}, answer)
    assert ec2.adapter.limits(["m5.large"]) == {}
    assert "m5.large" in ec2.warned[0]
