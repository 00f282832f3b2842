"""Pages, batches, time-outs, broken connections and forks: our EC2 adapter on the sandbox over real HTTP."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from contract.ec2_adapters import Adapter, create

from eni_tasks.adapters.ec2.client import ClientOptions
from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InstanceId, VpcId
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from contract.ec2_servers import Sandbox

    from eni_tasks.adapters.ec2.adapter import BotoEc2


@pytest.fixture
def adapter(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    return Adapter(monkeypatch, sandbox.server.url)


@pytest.fixture
def ec2(adapter: Adapter) -> BotoEc2:
    return adapter.on()


def add_tables(sandbox: Sandbox, count: int) -> int:
    for _ in range(count):
        sandbox.built.world.add_route_table(sandbox.built.vpc_id)
    return len(sandbox.control.view().route_tables)


def test_three_pages_are_all_seen(sandbox: Sandbox, ec2: BotoEc2) -> None:
    tables = add_tables(sandbox, 205)
    assert len(ec2.infrastructure([VpcId(sandbox.built.vpc_id)]).route_tables) == tables
    assert sandbox.control.counts()["DescribeRouteTables"] == {"OK": 3}


def test_a_failing_second_page_gives_nothing(sandbox: Sandbox, ec2: BotoEc2, adapter: Adapter) -> None:
    add_tables(sandbox, 205)
    fault = Fault(action="DescribeRouteTables", code="RequestLimitExceeded", status=503, skip=1, times=None)
    sandbox.control.add_faults([fault])
    with pytest.raises(Ec2Error) as caught:
        ec2.infrastructure([VpcId(sandbox.built.vpc_id)])
    assert (caught.value.reaction, caught.value.throttled) == (Ec2Reaction.RETRY_LATER, True)
    assert adapter.observed[-2:] == [("DescribeRouteTables", "OK"), ("DescribeRouteTables", "RequestLimitExceeded")]


def test_a_forgotten_page_starts_the_listing_again(sandbox: Sandbox, ec2: BotoEc2) -> None:
    tables = add_tables(sandbox, 205)
    sandbox.control.add_faults([Fault(action="DescribeRouteTables", code="InvalidNextToken", skip=1)])
    assert len(ec2.infrastructure([VpcId(sandbox.built.vpc_id)]).route_tables) == tables
    assert sandbox.control.counts()["DescribeRouteTables"] == {"OK": 4, "InvalidNextToken": 1}


def test_201_instances_are_two_calls_each_with_a_page_size_and_no_ids(sandbox: Sandbox, ec2: BotoEc2) -> None:
    real = InstanceId(sandbox.launch())
    found = ec2.interfaces_of([InstanceId(f"i-f{number:016x}") for number in range(200)] + [real])
    assert len(found) == 201
    assert len(found[real]) == 1
    ec2.interfaces_by_id([found[real][0].id])
    ec2.tagged_instances({"a": "b"})
    ec2.infrastructure([VpcId(sandbox.built.vpc_id)])
    calls = sandbox.control.calls()
    assert [call.action for call in calls[:3]] == ["DescribeNetworkInterfaces"] * 3
    for call in calls:
        assert "MaxResults" in call.parameters
        assert not [name for name in call.parameters if "Id." in name]


def test_the_observer_is_told_what_the_server_counted(sandbox: Sandbox, ec2: BotoEc2, adapter: Adapter) -> None:
    made = create(ec2, sandbox)
    ec2.interfaces_of([InstanceId(sandbox.launch())])
    ec2.delete_interface(made.id)
    ec2.delete_interface(made.id)
    observed: dict[str, dict[str, int]] = {}
    for action, code in adapter.observed:
        codes = observed.setdefault(action, {})
        codes[code] = codes.get(code, 0) + 1
    assert observed == sandbox.control.counts()


SLOW = ClientOptions(read_timeout_seconds=0.8, read_attempts=2)


def wait_for_calls(sandbox: Sandbox, action: str, count: int) -> dict[str, int]:
    """The server notes a late call when it is through with it."""
    deadline = time.monotonic() + 10
    while sum(sandbox.control.counts().get(action, {}).values()) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    return dict(sandbox.control.counts()[action])


def test_an_assign_whose_answer_is_late_is_sent_once(sandbox: Sandbox, adapter: Adapter) -> None:
    made = create(adapter.on(), sandbox)
    sandbox.control.add_faults([Fault(action="AssignPrivateIpAddresses", delay_seconds=1.6)])
    with pytest.raises(Ec2Error) as caught:
        adapter.on(SLOW).assign_addresses(made.id, 3)
    assert (caught.value.code, caught.value.reaction) == ("ReadTimeoutError", Ec2Reaction.AMBIGUOUS)
    assert wait_for_calls(sandbox, "AssignPrivateIpAddresses", 1) == {"OK": 1}
    assert len(adapter.on().interfaces_by_id([made.id])[made.id].addresses) == 2 + 3


def test_a_read_whose_answer_is_late_is_sent_again(sandbox: Sandbox, adapter: Adapter) -> None:
    instance_id = InstanceId(sandbox.launch())
    sandbox.control.add_faults([Fault(action="DescribeNetworkInterfaces", delay_seconds=1.6)])
    assert len(adapter.on(SLOW).interfaces_of([instance_id])[instance_id]) == 1
    assert wait_for_calls(sandbox, "DescribeNetworkInterfaces", 2) == {"OK": 2}


@pytest.mark.parametrize(
    ("fault", "reaction"),
    [
        ({"drop": True, "after": True}, Ec2Reaction.AMBIGUOUS),
        ({"drop": True}, Ec2Reaction.AMBIGUOUS),
        ({"code": "InternalError", "status": 500, "after": True}, Ec2Reaction.AMBIGUOUS),
        ({"code": "RequestLimitExceeded", "status": 503}, Ec2Reaction.RETRY_LATER),
        ({"code": "UnauthorizedOperation", "status": 403}, Ec2Reaction.ACCOUNT_WIDE),
    ],
    ids=["dropped-after-effect", "dropped", "internal-error", "throttled", "unauthorized"],
)
def test_a_mutation_is_sent_once_whatever_happens(
    sandbox: Sandbox, adapter: Adapter, fault: dict[str, Any], reaction: Ec2Reaction
) -> None:
    made = create(adapter.on(), sandbox)
    sandbox.control.reset_calls()
    sandbox.control.add_faults([Fault(action="AssignPrivateIpAddresses", times=None, **fault)])
    with pytest.raises(Ec2Error) as caught:
        adapter.on(ClientOptions()).assign_addresses(made.id, 1)
    assert caught.value.reaction is reaction
    assert sum(wait_for_calls(sandbox, "AssignPrivateIpAddresses", 1).values()) == 1


def test_nobody_listens_means_nothing_was_sent(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Adapter(monkeypatch, "http://127.0.0.1:1").on()
    with pytest.raises(Ec2Error) as caught:
        create(ec2, sandbox)
    assert (caught.value.code, caught.value.reaction) == ("EndpointConnectionError", Ec2Reaction.RETRY_LATER)


def test_a_fork_shares_no_connection(sandbox: Sandbox, adapter: Adapter) -> None:
    program = Path(__file__).with_name("forking.py")
    instances = [sandbox.launch() for _ in range(4)]
    result = subprocess.run(
        [sys.executable, str(program), *instances], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert sandbox.control.counts() == {"DescribeNetworkInterfaces": {"OK": 20 * 5}}
