"""The sandbox's bad days (rates, rights, faults), its record of calls and its oracle."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from contract.ec2_servers import ec2_client
from msgspec.structs import replace

from eni_tasks.sandbox.ec2.knobs import Bucket, Fault, aws_default_buckets

if TYPE_CHECKING:
    from contract.ec2_servers import Sandbox


def codes(sandbox: Sandbox, count: int) -> list[str]:
    """Creates interfaces and tells what came of each."""
    outcomes = []
    for _ in range(count):
        try:
            sandbox.create()
        except ClientError as refused:
            outcomes.append(refused.response["Error"]["Code"])
        except ConnectionClosedError:
            outcomes.append("closed")
        else:
            outcomes.append("OK")
    return outcomes


# -- rates, latency, rights ------------------------------------------------------------------
def test_bucket_refuses_what_is_above_and_fills_again(timed: Sandbox, clock: Any) -> None:
    timed.control.set_knobs(buckets={"CreateNetworkInterface": Bucket(2, 0.5)})
    assert codes(timed, 3) == ["OK", "OK", "RequestLimitExceeded"]
    clock.advance(2)
    assert codes(timed, 2) == ["OK", "RequestLimitExceeded"]
    timed.client.describe_vpcs()  # another action has another bucket
    refused = [call for call in timed.control.calls("CreateNetworkInterface") if not call.effect]
    assert len(refused) == 2


def test_throttling_is_http_503(timed: Sandbox) -> None:
    timed.control.set_knobs(buckets={"DescribeVpcs": Bucket(0, 0)})
    with pytest.raises(ClientError) as refused:
        timed.client.describe_vpcs()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503


def test_reads_without_filter_have_a_smaller_bucket(timed: Sandbox) -> None:
    timed.control.set_knobs(buckets=aws_default_buckets(0.02))  # one call instead of 50, two instead of 100
    timed.interfaces()
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        timed.interfaces()
    timed.interfaces(MaxResults=5)
    timed.interfaces(MaxResults=5)
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        timed.interfaces(MaxResults=5)


def test_documented_rates() -> None:
    buckets = aws_default_buckets()
    assert buckets["CreateNetworkInterface"] == Bucket(100, 5)
    assert buckets["AttachNetworkInterface"] == Bucket(50, 5)
    assert buckets["DescribeSubnets"] == Bucket(100, 20)


def test_a_subnet_that_is_exhausted(sandbox: Sandbox) -> None:
    made = sandbox.create()
    subnet = sandbox.control.view().interfaces[0].subnet_id
    sandbox.control.set_knobs(exhausted_subnets=[subnet])
    assert sandbox.control.view().free[subnet] == 0
    assert codes(sandbox, 1) == ["InsufficientFreeAddressesInSubnet"]
    with pytest.raises(ClientError, match="InsufficientFreeAddressesInSubnet"):
        sandbox.client.assign_private_ip_addresses(NetworkInterfaceId=made, SecondaryPrivateIpAddressCount=1)
    sandbox.control.set_knobs(exhausted_subnets=[])
    assert codes(sandbox, 1) == ["OK"]


def test_latency_per_action(sandbox: Sandbox) -> None:
    sandbox.control.set_knobs(latency_seconds={"DescribeVpcs": 0.2, "*": 0.0})
    sandbox.client.describe_subnets()
    started = time.monotonic()
    sandbox.client.describe_vpcs()
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize("options", [{}, {"DryRun": True}], ids=["call", "dry run"])
def test_denied_action(sandbox: Sandbox, options: dict[str, bool]) -> None:
    sandbox.control.set_knobs(denied_actions=["Describe*"])
    with pytest.raises(ClientError) as refused:
        sandbox.client.describe_vpcs(**options)
    assert refused.value.response["Error"]["Code"] == "UnauthorizedOperation"
    sandbox.create()


# -- faults ------------------------------------------------------------------------------------
CREATE = Fault(action="CreateNetworkInterface", code="InternalError", status=500)


@pytest.mark.parametrize(
    ("fault", "expected", "made"),
    [
        (CREATE, ["InternalError", "OK", "OK"], 2),
        (replace(CREATE, skip=1), ["OK", "InternalError", "OK"], 2),
        (replace(CREATE, times=2), ["InternalError", "InternalError", "OK"], 1),
        (replace(CREATE, times=None), ["InternalError"] * 3, 0),
        (replace(CREATE, after=True), ["InternalError", "OK", "OK"], 3),
        (replace(CREATE, drop=True), ["closed", "OK", "OK"], 2),
        (replace(CREATE, drop=True, after=True), ["closed", "OK", "OK"], 3),
        (replace(CREATE, action="*Interface"), ["InternalError", "OK", "OK"], 2),
        (replace(CREATE, action="Attach*"), ["OK"] * 3, 3),
    ],
    ids=["first", "second", "twice", "always", "after", "lost", "answer lost", "pattern", "other action"],
)
def test_scripted_fault(sandbox: Sandbox, fault: Fault, expected: list[str], made: int) -> None:
    sandbox.control.add_faults([fault])
    assert codes(sandbox, 3) == expected
    assert len(sandbox.control.view().interfaces) == made
    assert [call.effect for call in sandbox.control.calls()].count(True) == made
    sandbox.control.clear_faults()
    assert codes(sandbox, 1) == ["OK"]


def test_faults_are_used_in_order(sandbox: Sandbox) -> None:
    sandbox.control.add_faults([CREATE, replace(CREATE, code="Unavailable", status=503)])
    assert codes(sandbox, 3) == ["InternalError", "Unavailable", "OK"]
    assert sandbox.control.pending_faults() == []


@pytest.mark.parametrize("kind", ["interface", "subnet", "instance", "another"])
def test_fault_for_one_resource(sandbox: Sandbox, kind: str) -> None:
    instance = sandbox.launch()
    made = sandbox.create()
    sandbox.attach(made, instance)
    resource = {"interface": made, "subnet": sandbox.subnet_id, "instance": instance, "another": "i-0"}[kind]
    fault = Fault(action="AssignPrivateIpAddresses", code="InternalError", resource=resource)
    sandbox.control.add_faults([fault])
    asked = {"NetworkInterfaceId": made, "SecondaryPrivateIpAddressCount": 1}
    if kind == "another":
        sandbox.client.assign_private_ip_addresses(**asked)
        assert sandbox.control.pending_faults() == [fault]
    else:
        with pytest.raises(ClientError):
            sandbox.client.assign_private_ip_addresses(**asked)


def test_answer_that_comes_too_late(sandbox: Sandbox) -> None:
    hasty = ec2_client(sandbox.server.url, read_timeout=0.2)
    made = sandbox.create()
    sandbox.control.add_faults([Fault(action="AssignPrivateIpAddresses", delay_seconds=0.6)])
    with pytest.raises(ReadTimeoutError):
        hasty.assign_private_ip_addresses(NetworkInterfaceId=made, SecondaryPrivateIpAddressCount=2)
    hasty.close()
    assert len(sandbox.interface(made)["PrivateIpAddresses"]) == 3


def test_read_that_omits_an_interface(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    made = sandbox.create()
    sandbox.attach(made, instance)
    asked = {"Filters": [{"Name": "attachment.instance-id", "Values": [instance]}]}
    sandbox.control.add_faults([Fault(action="DescribeNetworkInterfaces", hides=(made,))])
    assert [len(sandbox.interfaces(**asked)) for _ in range(2)] == [1, 2]


# -- the record ----------------------------------------------------------------------------------
def test_calls_are_recorded_with_caller_and_outcome(sandbox: Sandbox) -> None:
    sandbox.control.set_knobs(denied_actions=["DeleteNetworkInterface"])
    made = sandbox.create(3)
    other = ec2_client(sandbox.server.url, key="WORKER-2")
    with pytest.raises(ClientError):
        other.delete_network_interface(NetworkInterfaceId=made)
    other.close()
    created, deleted = sandbox.control.calls()
    assert (created.action, created.code, created.caller, created.effect) == (
        "CreateNetworkInterface",
        "OK",
        "CONTRACT",
        True,
    )
    assert created.parameters["SecondaryPrivateIpAddressCount"] == "3"
    assert (deleted.code, deleted.caller, deleted.effect) == ("UnauthorizedOperation", "WORKER-2", False)
    assert deleted.parameters == {"NetworkInterfaceId": made}
    assert sandbox.control.counts() == {
        "CreateNetworkInterface": {"OK": 1},
        "DeleteNetworkInterface": {"UnauthorizedOperation": 1},
    }
    sandbox.control.reset_calls()
    assert sandbox.control.counts() == {}


# -- the oracle ----------------------------------------------------------------------------------
def test_used_address_that_is_taken_away(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    made = sandbox.create(3)
    attachment = sandbox.attach(made, instance)
    first, second, third = (each["PrivateIpAddress"] for each in sandbox.interface(made)["PrivateIpAddresses"][1:])
    sandbox.control.use_addresses([first, second])
    sandbox.server.sandbox.oracle.used_addresses = lambda: [third]
    sandbox.control.free_addresses([first])
    sandbox.client.unassign_private_ip_addresses(NetworkInterfaceId=made, PrivateIpAddresses=[first, second])
    sandbox.client.detach_network_interface(AttachmentId=attachment)
    assert sandbox.control.violations() == [
        f"UnassignPrivateIpAddresses took {second} off {made} while in use",
        f"DetachNetworkInterface took {third} off {made} while in use",
    ]


def test_leftovers_are_unattached_and_ours(sandbox: Sandbox) -> None:
    instance = sandbox.launch()
    ours, theirs, placed = (
        sandbox.control.add_interface(sandbox.subnet_id, tags={"cluster": cluster}, instance_id=place).id
        for cluster, place in (("c1", ""), ("c2", ""), ("c1", instance))
    )
    assert [each.id for each in sandbox.control.leftovers({"cluster": "c1"})] == [ours]
    assert [each.id for each in sandbox.control.leftovers()] == [ours, theirs]
    assert placed not in {each.id for each in sandbox.control.leftovers()}


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        ({"addresses": ("100.64.0.4",)}, "at once"),
        ({"addresses": ("100.64.64.9",)}, "cannot give"),
        ({"addresses": ("100.64.0.1",)}, "cannot give"),
        ({"addresses": tuple(f"100.64.1.{last}" for last in range(10))}, "takes 10"),
        ({"index": 1}, "at index 1"),
        ({"instance_id": "i-0123456789abcdef0"}, "gone"),
        ({"crowd": 2}, "takes 3"),
    ],
    ids=["double address", "other subnet", "reserved", "too many addresses", "same place", "no instance", "too many"],
)
def test_oracle_trusts_nobody(sandbox: Sandbox, damage: dict[str, Any], word: str) -> None:
    """Damages the records behind the back of every check; the oracle must see it."""
    world = sandbox.built.world
    instance = sandbox.launch()
    sandbox.control.add_interface(sandbox.subnet_id, instance_id=instance, device_index=1)  # has 100.64.0.4
    second = sandbox.control.add_interface(sandbox.subnet_id, instance_id=instance, device_index=2)
    assert sandbox.control.violations() == []
    attachment = replace(second.attachment, device_index=damage.get("index", 2))
    attachment = replace(attachment, instance_id=damage.get("instance_id", instance))
    broken = replace(second, addresses=damage.get("addresses", ()), attachment=attachment)
    world.keep_interface(second.id, broken)
    for number in range(damage.get("crowd", 0)):
        sandbox.control.add_interface(sandbox.subnet_id, instance_id=instance, device_index=3 + number)
    [violation] = sandbox.control.violations()
    assert word in violation
