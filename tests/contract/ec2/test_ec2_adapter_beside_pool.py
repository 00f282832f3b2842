"""Our EC2 adapter's calls beside the pool: Elastic IPs on the sandbox and on moto, IPv6 prefixes on the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contract.ec2_adapters import TAGS, Adapter, create

from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InstanceId, InterfaceId, SubnetId, VpcId

if TYPE_CHECKING:
    from contract.ec2_servers import Cloud, Sandbox

    from eni_tasks.adapters.ec2.adapter import BotoEc2


# -- Elastic IPs, on both servers ------------------------------------------------------------------
@pytest.fixture
def ec2(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> BotoEc2:
    return Adapter(monkeypatch, cloud.client.meta.endpoint_url).on()


def allocated(cloud: Cloud, ec2: BotoEc2, **tags: str) -> str:
    """Allocates an Elastic IP with tags; returns the allocation's id."""
    if cloud.kind == "moto":
        named = [{"Key": key, "Value": value} for key, value in tags.items()]
        specification = [{"ResourceType": "elastic-ip", "Tags": named}]
        return str(cloud.client.allocate_address(Domain="vpc", TagSpecifications=specification)["AllocationId"])
    from eni_tasks.sandbox.ec2.admin import Ec2Admin  # noqa: PLC0415 - of this server alone

    return Ec2Admin(cloud.client.meta.endpoint_url).allocate_elastic_ip(**tags).id


def test_an_elastic_ip_from_free_to_associated(cloud: Cloud, ec2: BotoEc2) -> None:
    wanted = allocated(cloud, ec2, pool="egress", more="tags")
    allocated(cloud, ec2, pool="other")
    allocated(cloud, ec2)
    (free,) = ec2.free_elastic_ips({"pool": "egress"})
    assert free.id == wanted
    assert ec2.free_elastic_ips({"pool": "egress", "more": "tags"}) == (free,)
    assert ec2.free_elastic_ips({"pool": "egress", "more": "other"}) == ()
    (first,) = ec2.interfaces_of([InstanceId(cloud.instance_id)])[InstanceId(cloud.instance_id)]
    ec2.associate_address(free, first.id, first.primary_address)
    (after,) = ec2.interfaces_of([InstanceId(cloud.instance_id)])[InstanceId(cloud.instance_id)]
    assert after.public_address == free.address
    assert ec2.free_elastic_ips({"pool": "egress"}) == ()
    (second,) = ec2.interfaces_of([InstanceId(cloud.second_instance_id)])[InstanceId(cloud.second_instance_id)]
    with pytest.raises(Ec2Error) as caught:
        ec2.associate_address(free, second.id, second.primary_address)
    assert caught.value.code == "Resource.AlreadyAssociated"
    assert caught.value.reaction is Ec2Reaction.STALE_VIEW


def test_tags_are_compared_as_they_are(cloud: Cloud, ec2: BotoEc2) -> None:
    allocated(cloud, ec2, wild="abc")
    assert ec2.free_elastic_ips({"wild": "a*"}) == ()
    assert ec2.free_elastic_ips({"wild": ""}) == ()
    assert len(ec2.free_elastic_ips({"wild": "abc"})) == 1


# -- on the sandbox alone: moto has neither its check of the private address nor prefixes -----------
@pytest.fixture
def ours(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> BotoEc2:
    return Adapter(monkeypatch, sandbox.server.url).on()


def test_no_tags_are_no_question(ours: BotoEc2, sandbox: Sandbox) -> None:
    assert ours.free_elastic_ips({}) == ()
    assert sandbox.control.calls("DescribeAddresses") == []


def test_an_address_that_has_one_gets_no_other(ours: BotoEc2, sandbox: Sandbox) -> None:
    instance_id = InstanceId(sandbox.launch())
    for _ in range(2):
        sandbox.control.allocate_elastic_ip({"pool": "egress"})
    one, other = ours.free_elastic_ips({"pool": "egress"})
    (first,) = ours.interfaces_of([instance_id])[instance_id]
    ours.associate_address(one, first.id, first.primary_address)
    with pytest.raises(Ec2Error, match=r"Resource\.AlreadyAssociated"):
        ours.associate_address(other, first.id, first.primary_address)


def test_an_elastic_ip_that_was_released_meanwhile(ours: BotoEc2, sandbox: Sandbox) -> None:
    sandbox.control.allocate_elastic_ip({"pool": "egress"})
    (gone,) = ours.free_elastic_ips({"pool": "egress"})
    sandbox.built.world.put(sandbox.built.world.elastic_ips, gone.id, None)
    instance_id = InstanceId(sandbox.launch())
    (first,) = ours.interfaces_of([instance_id])[instance_id]
    with pytest.raises(Ec2Error) as caught:
        ours.associate_address(gone, first.id, first.primary_address)
    assert caught.value.reaction is Ec2Reaction.STALE_VIEW


def test_ipv6_blocks_and_prefixes(ours: BotoEc2, sandbox: Sandbox) -> None:
    vpc_id, block = sandbox.built.vpc_id, "2001:db8:0:1::/64"
    dual = sandbox.control.add_subnet(vpc_id, "a", "10.0.200.0/24", ipv6_cidr=block).id
    subnets = ours.infrastructure([VpcId(vpc_id)]).subnets
    assert subnets[dual].ipv6_cidr == block
    assert subnets[sandbox.subnet_id].ipv6_cidr == ""
    made = ours.create_interface(
        subnet_id=SubnetId(dual),
        secondary_count=2,
        security_groups=[sandbox.built.pod_group],
        description="ours",
        tags=TAGS,
        client_token="dual",  # noqa: S106 - no password
        ipv6_prefix=True,
    )
    assert (len(made.addresses), len(made.ipv6_prefixes)) == (2, 1)
    instance_id = InstanceId(sandbox.control.launch_instance("m5.large", dual).id)
    (first,) = ours.interfaces_of([instance_id])[instance_id]
    prefix = ours.assign_ipv6_prefix(first.id)
    assert prefix.endswith("/80")
    (after,) = ours.interfaces_of([instance_id])[instance_id]
    assert after.ipv6_prefixes == (prefix,)
    assert prefix not in made.ipv6_prefixes


def test_no_prefix_where_there_is_no_ipv6(ours: BotoEc2, sandbox: Sandbox) -> None:
    made = create(ours, sandbox)
    with pytest.raises(Ec2Error, match="IPv6 CIDR block") as caught:
        ours.assign_ipv6_prefix(InterfaceId(made.id))
    assert caught.value.reaction is Ec2Reaction.OUR_FAULT
