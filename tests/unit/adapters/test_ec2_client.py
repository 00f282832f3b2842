"""One pair of clients per process, made from AWS's usual variables."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from eni_tasks.adapters.ec2.adapter import BotoEc2
from eni_tasks.adapters.ec2.client import ClientOptions, Ec2Clients
from eni_tasks.errors import Ec2Error, Ec2Reaction, InvalidInput
from eni_tasks.model.network import VpcId

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment with nothing of AWS in it, so that nothing is found by chance."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


def test_without_a_region_it_says_which_variable_to_set() -> None:
    with pytest.raises(InvalidInput, match="AWS_REGION"):
        Ec2Clients(ClientOptions()).get(mutation=False)


@pytest.mark.parametrize(
    ("variables", "region"),
    [
        ({"AWS_REGION": "cn-north-1"}, "cn-north-1"),
        ({"AWS_DEFAULT_REGION": "us-gov-west-1"}, "us-gov-west-1"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-1"),
    ],
    ids=["region", "default", "both"],
)
def test_the_region_comes_from_the_environment(aws: pytest.MonkeyPatch, variables: dict[str, str], region: str) -> None:
    for name, value in variables.items():
        aws.setenv(name, value)
    assert Ec2Clients(ClientOptions()).get(mutation=True).meta.region_name == region


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EC2"])
@pytest.mark.parametrize("mutation", [False, True], ids=["reads", "mutations"])
def test_another_endpoint_reaches_both_clients(aws: pytest.MonkeyPatch, variable: str, mutation: bool) -> None:  # noqa: FBT001
    aws.setenv("AWS_REGION", "cn-north-1")
    aws.setenv(variable, "https://ec2.example:8443")
    assert Ec2Clients(ClientOptions()).get(mutation=mutation).meta.endpoint_url == "https://ec2.example:8443"


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_ENDPOINT_URL_EC2", "no url"), ("AWS_REGION", "eu west 1")], ids=["endpoint", "region"]
)
def test_a_senseless_endpoint_or_region_is_told(aws: pytest.MonkeyPatch, name: str, value: str) -> None:
    aws.setenv("AWS_REGION", "eu-west-1")
    aws.setenv(name, value)
    with pytest.raises(InvalidInput, match="cannot be used"):
        Ec2Clients(ClientOptions()).get(mutation=False)


def test_options_reach_the_clients_and_only_reads_may_be_repeated(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_REGION", "eu-west-1")
    options = ClientOptions(connect_timeout_seconds=1.5, read_timeout_seconds=7, connections=33, read_attempts=3)
    clients = Ec2Clients(options)
    for mutation, attempts in ((False, 3), (True, 1)):
        config = clients.get(mutation=mutation).meta.config
        assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (1.5, 7, 33)
        assert config.tcp_keepalive
        assert config.retries == {"mode": "standard", "total_max_attempts": attempts}


def test_all_threads_get_the_same_pair(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_REGION", "eu-west-1")
    clients = Ec2Clients(ClientOptions())
    with ThreadPoolExecutor(8) as pool:
        got = {id(client) for client in pool.map(lambda number: clients.get(mutation=number % 2 == 1), range(64))}
    assert len(got) == 2


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"AWS_PROFILE": "nobody"},
        {"AWS_ACCESS_KEY_ID": "half"},
        {"AWS_ROLE_ARN": "arn:aws:iam::1:role/x", "AWS_WEB_IDENTITY_TOKEN_FILE": "missing"},
    ],
    ids=["none", "no-profile", "half-a-key", "no-token"],
)
def test_missing_credentials_are_account_wide_and_observed(
    aws: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str]
) -> None:
    aws.setenv("AWS_REGION", "eu-west-1")
    aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name, value in variables.items():
        aws.setenv(name, str(tmp_path / value) if name.endswith("FILE") else value)
    observed: list[tuple[str, str]] = []
    ec2 = BotoEc2(
        options=ClientOptions(), observe=lambda action, code, _: observed.append((action, code)), warn=[].append
    )
    with pytest.raises(Ec2Error) as caught:
        ec2.infrastructure([VpcId("vpc-1")])
    assert caught.value.reaction is Ec2Reaction.ACCOUNT_WIDE
    assert observed == [("DescribeVpcs", caught.value.code)]
