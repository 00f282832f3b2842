"""Our EC2 adapter on one of the contract tests' servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.adapters.ec2.adapter import BotoEc2
from eni_tasks.adapters.ec2.client import ClientOptions
from eni_tasks.model.network import SubnetId

if TYPE_CHECKING:
    import pytest
    from contract.ec2_servers import Sandbox

    from eni_tasks.model.network import Interface

ONCE = ClientOptions(read_attempts=1)
TAGS = {"io.cilium/cluster-name": "c1", "owner": "us"}


class Adapter:
    """Makes adapters for a server, through the environment as in life; keeps what their hooks received."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        aws = {"ACCESS_KEY_ID": "ADAPTER", "SECRET_ACCESS_KEY": "sandbox", "REGION": "eu-west-1"}
        for name, value in (aws | {"ENDPOINT_URL_EC2": url}).items():
            monkeypatch.setenv(f"AWS_{name}", value)
        self.observed: list[tuple[str, str]] = []
        self.warned: list[str] = []

    def on(self, options: ClientOptions = ONCE) -> BotoEc2:
        return BotoEc2(
            options=options,
            observe=lambda action, code, _: self.observed.append((action, code)),
            warn=self.warned.append,
        )


def create(ec2: BotoEc2, sandbox: Sandbox, secondary_count: int = 2, client_token: str = "") -> Interface:
    """Creates an interface in zone a's pod subnet."""
    return ec2.create_interface(
        subnet_id=SubnetId(sandbox.subnet_id),
        secondary_count=secondary_count,
        security_groups=[sandbox.built.pod_group],
        description="ours",
        tags=TAGS,
        client_token=client_token or "t-1",
    )
