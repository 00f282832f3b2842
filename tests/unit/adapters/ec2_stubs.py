"""A BotoEc2 on a boto3 client that checks each request against the service model and sends nothing."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.stub import Stubber

from eni_tasks.adapters.ec2.adapter import BotoEc2
from eni_tasks.adapters.ec2.client import ClientOptions, Ec2Calls


class StubbedEc2:
    """The adapter with scripted answers.

    `observed` and `warned` are the calls of its hooks, `mutations` for each call whether it went
    through the client that sends once.
    """

    def __init__(self) -> None:
        self._client = boto3.session.Session().client(
            "ec2",
            region_name="eu-west-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",  # noqa: S106 - signs nothing
        )
        self._stubber = Stubber(self._client)
        self._stubber.activate()
        self.observed: list[tuple[str, str]] = []
        self.warned: list[str] = []
        self.mutations: list[bool] = []
        self.adapter = BotoEc2(options=ClientOptions(), observe=self._observe, warn=self.warned.append)
        self.adapter._calls = Ec2Calls(self, self._observe)  # type: ignore[arg-type]

    def get(self, *, mutation: bool) -> Any:
        self.mutations.append(mutation)
        return self._client

    def expect(self, method: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """The next call must be exactly `request`; it gets `answer`."""
        self._stubber.add_response(method, answer, request)

    def refuse(self, method: str, code: str, message: str = "", status: int = 400) -> None:
        """The next call is refused."""
        self._stubber.add_client_error(method, code, message, status)

    def done(self) -> None:
        """Fails if an expected call was not made."""
        self._stubber.assert_no_pending_responses()

    def _observe(self, action: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        self.observed.append((action, code))


def names(name: str, *values: str) -> dict[str, Any]:
    """A filter of a request."""
    return {"Name": name, "Values": list(values)}


def described(interface_id: str, instance_id: str = "i-1", index: int = 1) -> dict[str, Any]:
    """An item of DescribeNetworkInterfaces with one secondary address."""
    number = interface_id.removeprefix("eni-")
    return {
        "NetworkInterfaceId": interface_id,
        "SubnetId": "subnet-1",
        "VpcId": "vpc-1",
        "PrivateIpAddress": f"10.0.{number}.4",
        "PrivateIpAddresses": [
            {"Primary": True, "PrivateIpAddress": f"10.0.{number}.4"},
            {"Primary": False, "PrivateIpAddress": f"10.0.{number}.5"},
        ],
        "Attachment": {"InstanceId": instance_id, "DeviceIndex": index, "AttachmentId": "eni-attach-1"},
    }
