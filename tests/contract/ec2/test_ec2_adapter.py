"""Our EC2 adapter over real HTTP: on the sandbox for behaviour, on moto for what moto has right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from contract.ec2_adapters import TAGS, Adapter, create

from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InstanceId, InterfaceId, SubnetId, VpcId

if TYPE_CHECKING:
    from contract.ec2_servers import Cloud, Sandbox

    from eni_tasks.adapters.ec2.adapter import BotoEc2
    from eni_tasks.model.network import Interface


@pytest.fixture
def adapter(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    return Adapter(monkeypatch, sandbox.server.url)


@pytest.fixture
def ec2(adapter: Adapter) -> BotoEc2:
    return adapter.on()


# -- on both servers -------------------------------------------------------------------------------


def test_an_interface_from_creation_to_deletion(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Adapter(monkeypatch, cloud.client.meta.endpoint_url).on()
    instance_id = InstanceId(cloud.instance_id)
    made = ec2.create_interface(
        subnet_id=SubnetId(cloud.subnet_id),
        secondary_count=2,
        security_groups=[cloud.group_id],
        description="ours",
        tags=TAGS,
        client_token="life",  # noqa: S106 - no password
    )
    assert (made.subnet_id, made.vpc_id, made.tags) == (cloud.subnet_id, cloud.vpc_id, TAGS)
    assert (len(made.addresses), made.security_groups) == (2, (cloud.group_id,))
    assert made.primary_address not in made.addresses
    attachment = ec2.attach_interface(made.id, instance_id, device_index=1, network_card=0)
    ec2.set_delete_on_termination(made.id, attachment)
    seen = ec2.interfaces_by_id([made.id, InterfaceId("eni-00000000000000000")])
    assert list(seen) == [made.id]
    attached = seen[made.id]
    assert (attached.instance_id, attached.device_index, attached.attachment_id) == (instance_id, 1, attachment)
    assert set(attached.addresses) == set(made.addresses)
    other = InstanceId(cloud.second_instance_id)
    found = ec2.interfaces_of([instance_id, other, InstanceId("i-00000000000000000")])
    assert {name: len(interfaces) for name, interfaces in found.items()} == {
        instance_id: 2,
        other: 1,
        "i-00000000000000000": 0,
    }
    cloud.client.detach_network_interface(AttachmentId=attachment)
    ec2.delete_interface(made.id)
    ec2.delete_interface(made.id)
    assert ec2.interfaces_by_id([made.id]) == {}


def test_unattached_interfaces_are_listed_by_tags_and_vpc(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Adapter(monkeypatch, cloud.client.meta.endpoint_url).on()

    def made(token: str, tags: dict[str, str]) -> Any:
        return ec2.create_interface(
            subnet_id=SubnetId(cloud.subnet_id),
            secondary_count=1,
            security_groups=[cloud.group_id],
            description="left behind",
            tags=tags,
            client_token=token,
        ).id

    left, attached = made("left", TAGS | {"more": "tags"}), made("attached", TAGS)
    others = [made("half", {"owner": "us"}), made("theirs", TAGS | {"io.cilium/cluster-name": "c2"}), made("bare", {})]
    attachment = ec2.attach_interface(attached, InstanceId(cloud.instance_id), device_index=2, network_card=0)
    here, elsewhere = VpcId(cloud.vpc_id), VpcId("vpc-00000000000000000")
    (found,) = ec2.unattached_interfaces(TAGS, [here, elsewhere])
    assert (found.id, found.vpc_id, found.status, found.attachment_id) == (left, here, "available", "")
    assert found.tags == TAGS | {"more": "tags"}
    assert ec2.unattached_interfaces(TAGS, [elsewhere]) == ()
    cloud.client.detach_network_interface(AttachmentId=attachment)
    for name in (left, attached, *others):
        ec2.delete_interface(name)


def test_the_network_is_read(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = Adapter(monkeypatch, cloud.client.meta.endpoint_url)
    read = adapter.on().infrastructure([VpcId(cloud.vpc_id), VpcId("vpc-00000000000000000")])
    assert list(read.vpcs) == [cloud.vpc_id]
    assert read.vpcs[cloud.vpc_id].primary_cidr == "10.0.0.0/16"
    subnet = read.subnets[cloud.subnet_id]
    assert (subnet.vpc_id, subnet.cidr, subnet.availability_zone) == (cloud.vpc_id, "10.0.0.0/20", "eu-west-1a")
    assert 4000 < subnet.free < 4092
    assert cloud.group_id in read.security_groups
    assert read.route_tables
    assert adapter.warned == []


def test_limits_are_read_and_unknown_types_are_missing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Adapter(monkeypatch, cloud.client.meta.endpoint_url).on()
    limits = ec2.limits(["m5.large", "m99.large", "c6in.32xlarge", "t3.medium"])
    assert {name: (each.max_interfaces, each.ipv4_per_interface) for name, each in limits.items()} == {
        "m5.large": (3, 10),
        "t3.medium": (3, 6),
        "c6in.32xlarge": (8, 50),
    }
    assert limits["m5.large"].hypervisor == "nitro"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda ec2, _: ec2.assign_addresses("eni-00000000000000000", 1), "InvalidNetworkInterfaceID.NotFound"),
        (
            lambda ec2, cloud: ec2.attach_interface(
                "eni-00000000000000000", cloud.instance_id, device_index=5, network_card=0
            ),
            "InvalidNetwork",
        ),
    ],
    ids=["assign", "attach"],
)
def test_an_unknown_interface_is_a_stale_view(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, call: Any, code: str
) -> None:
    with pytest.raises(Ec2Error, match=code) as caught:
        call(Adapter(monkeypatch, cloud.client.meta.endpoint_url).on(), cloud)
    assert caught.value.reaction is Ec2Reaction.STALE_VIEW


# -- on the sandbox: refusals that it makes as EC2 does ----------------------------------------------


def test_the_same_token_is_the_same_interface(sandbox: Sandbox, ec2: BotoEc2) -> None:
    assert create(ec2, sandbox).id == create(ec2, sandbox).id
    with pytest.raises(Ec2Error) as caught:
        create(ec2, sandbox, secondary_count=3)
    assert (caught.value.code, caught.value.reaction) == ("IdempotentParameterMismatch", Ec2Reaction.OUR_FAULT)


def test_assign_answers_only_what_is_new(sandbox: Sandbox, ec2: BotoEc2) -> None:
    made = create(ec2, sandbox)
    new = ec2.assign_addresses(made.id, 3)
    assert len(new) == 3
    assert set(ec2.interfaces_by_id([made.id])[made.id].addresses) == {*made.addresses, *new}


def test_prefixes(sandbox: Sandbox, ec2: BotoEc2) -> None:
    subnet = sandbox.built.world.add_subnet(sandbox.built.vpc_id, "a", "10.0.240.0/26").id  # three whole blocks

    def made(token: str, **wanted: int) -> Interface:
        return ec2.create_interface(
            subnet_id=SubnetId(subnet),
            security_groups=[sandbox.built.pod_group],
            description="ours",
            tags=TAGS,
            client_token=token,
            **{"secondary_count": 0, **wanted},
        )

    one = made("t-1", prefix_count=2)
    assert made("t-1", prefix_count=2).prefixes == one.prefixes == ("10.0.240.16/28", "10.0.240.32/28")
    assert one.addresses == ()
    [read] = ec2.interfaces_by_id([one.id]).values()
    assert read.prefixes == one.prefixes
    for ask in (lambda: ec2.assign_prefixes(one.id, 1), lambda: made("t-2", prefix_count=1)):
        with pytest.raises(Ec2Error, match="InsufficientCidrBlocks") as caught:
            ask()
        assert caught.value.reaction is Ec2Reaction.NO_PREFIX
    assert len(ec2.assign_addresses(one.id, 3)) == 3
    sandbox.client.unassign_private_ip_addresses(NetworkInterfaceId=one.id, Ipv4Prefixes=[one.prefixes[0]])
    assert ec2.assign_prefixes(one.id, 1) == ("10.0.240.16/28",)
    instance_id = InstanceId(sandbox.launch("m4.large"))  # Xen
    with pytest.raises(Ec2Error, match="Prefixes are not supported"):
        ec2.attach_interface(one.id, instance_id, device_index=1, network_card=0)
    assert sandbox.control.violations() == []


def test_limits_and_states_of_the_instance(sandbox: Sandbox, ec2: BotoEc2) -> None:
    instance_id = InstanceId(sandbox.launch("m5.large"))
    made = [create(ec2, sandbox, client_token=f"t-{number}") for number in range(3)]

    def refusal(index: int, interface_id: str = made[2].id) -> Ec2Error:
        with pytest.raises(Ec2Error) as caught:
            ec2.attach_interface(InterfaceId(interface_id), instance_id, device_index=index, network_card=0)
        return caught.value

    ec2.attach_interface(made[0].id, instance_id, device_index=1, network_card=0)
    taken = refusal(1)
    assert (taken.reaction, taken.index_taken) == (Ec2Reaction.STALE_VIEW, True)
    assert refusal(2, made[0].id).reaction is Ec2Reaction.STALE_VIEW
    ec2.attach_interface(made[1].id, instance_id, device_index=2, network_card=0)
    full = refusal(3)
    assert (full.reaction, full.index_taken) == (Ec2Reaction.INSTANCE_FULL, False)
    with pytest.raises(Ec2Error) as caught:
        ec2.assign_addresses(made[0].id, 8)
    assert caught.value.reaction is Ec2Reaction.INTERFACE_FULL
    with pytest.raises(Ec2Error) as caught:
        ec2.delete_interface(made[0].id)
    assert caught.value.reaction is Ec2Reaction.STALE_VIEW
    sandbox.control.terminate_instance(instance_id)
    assert refusal(1).reaction is Ec2Reaction.NOT_RUNNING
    assert sandbox.control.violations() == []


def test_instances_are_found_by_all_their_tags(sandbox: Sandbox, ec2: BotoEc2) -> None:
    both = sandbox.launch(tags={"team": "net", "env": "prod"})
    sandbox.launch(tags={"team": "net"})
    assert ec2.tagged_instances({"team": "net", "env": "prod"}) == {both}
