"""The two EC2s that the contract tests run against: our sandbox, and moto for what moto has right."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import boto3
from botocore.config import Config
from moto.server import ThreadedMotoServer

from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.ec2.world import DefaultWorld, build_default_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REGION = "eu-west-1"
_NOT_IN_THE_MODEL = {"requestId", "return"}  # EC2 sends these beside what the model names


@dataclass(frozen=True)
class Cloud:
    """An EC2 with a VPC, a subnet, a group and a running m5.large, and how to ask it."""

    kind: str
    client: Any
    vpc_id: str
    subnet_id: str
    group_id: str
    instance_id: str
    second_instance_id: str


@dataclass(frozen=True)
class Sandbox:
    """Our server in this process, with the network it serves and a client whose answers are checked."""

    server: Ec2Server
    built: DefaultWorld
    client: Any

    @property
    def control(self) -> Any:
        return self.server.control

    @property
    def subnet_id(self) -> str:
        return self.built.pod_subnets["a"]

    def launch(self, instance_type: str = "m5.large", **options: Any) -> str:
        """Launches an instance in zone a and returns its id."""
        return self.control.launch_instance(instance_type, self.built.node_subnets["a"], **options).id

    def create(self, secondary: int = 0, **options: Any) -> str:
        """Creates an interface in zone a's pod subnet and returns its id."""
        options = {"SubnetId": self.subnet_id, "SecondaryPrivateIpAddressCount": secondary} | options
        return self.client.create_network_interface(**options)["NetworkInterface"]["NetworkInterfaceId"]

    def attach(self, interface_id: str, instance_id: str, index: int = 1, **options: Any) -> str:
        """Attaches to card 0 and returns the attachment's id."""
        place = {"NetworkInterfaceId": interface_id, "InstanceId": instance_id, "DeviceIndex": index}
        return self.client.attach_network_interface(**place, **({"NetworkCardIndex": 0} | options))["AttachmentId"]

    def interfaces(self, **wanted: Any) -> list[dict[str, Any]]:
        """Describes interfaces."""
        return self.client.describe_network_interfaces(**wanted)["NetworkInterfaces"]

    def interface(self, interface_id: str) -> dict[str, Any]:
        """Describes one interface."""
        return self.interfaces(NetworkInterfaceIds=[interface_id])[0]


def ec2_client(url: str, key: str = "CONTRACT", **options: Any) -> Any:
    """A boto3 client that tries once."""
    config = Config(retries={"total_max_attempts": 1}, **options)
    return boto3.client(
        "ec2",
        region_name=REGION,
        aws_access_key_id=key,
        aws_secret_access_key="sandbox",  # noqa: S106 - any will do
        endpoint_url=url,
        config=config,
    )


@contextmanager
def sandbox_server(clock: Callable[[], float] | None = None) -> Iterator[Sandbox]:
    """Our sandbox; every answer is checked against the service model."""
    built = build_default_world(**({"clock": clock} if clock else {}))
    with Ec2Server(built.world) as server:
        client = ec2_client(server.url)
        client.meta.events.register("before-parse.ec2", check_against_model)
        yield Sandbox(server, built, client)
        client.close()


@contextmanager
def sandbox_cloud() -> Iterator[Cloud]:
    """Our sandbox as a cloud."""
    with sandbox_server() as sandbox:
        yield Cloud(
            "sandbox",
            sandbox.client,
            sandbox.built.vpc_id,
            sandbox.built.node_subnets["a"],
            sandbox.built.pod_group,
            sandbox.launch(groups=[sandbox.built.node_group]),
            sandbox.launch(),
        )


@contextmanager
def moto_cloud() -> Iterator[Cloud]:
    """moto's server as a cloud."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = ec2_client(f"http://{host}:{port}")
    try:
        vpc_id = client.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        block = {"VpcId": vpc_id, "CidrBlock": "10.0.0.0/20", "AvailabilityZone": f"{REGION}a"}
        subnet_id = client.create_subnet(**block)["Subnet"]["SubnetId"]
        group_id = client.create_security_group(GroupName="pods", Description="pods", VpcId=vpc_id)["GroupId"]
        instances = client.run_instances(
            ImageId=client.describe_images()["Images"][0]["ImageId"],
            InstanceType="m5.large",
            SubnetId=subnet_id,
            MinCount=2,
            MaxCount=2,
        )["Instances"]
        yield Cloud("moto", client, vpc_id, subnet_id, group_id, *(each["InstanceId"] for each in instances))
    finally:
        client.close()
        server.stop()


def check_against_model(operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Fails on an element of an answer that the service model doesn't know, whatever boto3 makes of it."""
    if response_dict["status_code"] == 200:
        _check(ET.fromstring(response_dict["body"]), operation_model.output_shape, operation_model.name)  # noqa: S314


def _check(element: ET.Element, shape: Any, path: str) -> None:
    if shape is not None and shape.type_name == "list":
        for item in element:
            assert _name(item) == shape.member.serialization["name"], f"{path} has a {_name(item)}"
            _check(item, shape.member, f"{path}[]")
        return
    members = shape.members if shape is not None and shape.type_name == "structure" else {}
    by_name = {member.serialization["name"]: member for member in members.values()}
    for child in element:
        name = _name(child)
        if name in by_name:
            _check(child, by_name[name], f"{path}.{name}")
        else:
            assert name in _NOT_IN_THE_MODEL, f"{path} has an unknown {name}"
    names = [_name(child) for child in element]
    assert len(names) == len(set(names)), f"{path} repeats an element"


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
