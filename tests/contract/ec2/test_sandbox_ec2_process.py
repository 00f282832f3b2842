"""The sandbox's EC2 as a process of its own, and its levers over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from contract.ec2_servers import ec2_client

from eni_tasks.sandbox.ec2.admin import Ec2Admin
from eni_tasks.sandbox.ec2.knobs import Bucket, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract.ec2_servers import Sandbox

MODULE = [sys.executable, "-m", "eni_tasks.sandbox.ec2"]


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    with subprocess.Popen([*MODULE, *arguments], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            yield running, json.loads(running.stdout.readline())
        finally:
            running.terminate()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_process_tells_its_address_and_ends_on_a_signal(ending: signal.Signals) -> None:
    with process("--zones", "3", "--region", "eu-central-1") as (running, ready):
        client = ec2_client(ready["url"])
        zones = {subnet["AvailabilityZone"] for subnet in client.describe_subnets()["Subnets"]}
        client.close()
        assert zones == {"eu-central-1a", "eu-central-1b", "eu-central-1c"}
        assert set(ready["pod_subnets"]) == {"a", "b", "c"}
        running.send_signal(ending)
        assert running.wait(10) == 0


def test_process_throttles_by_a_factor() -> None:
    with process("--throttle", "0.01", "--latency-ms", "1") as (_, ready):
        client = ec2_client(ready["url"])
        client.describe_vpcs()
        with pytest.raises(ClientError, match="RequestLimitExceeded"):
            client.describe_vpcs()
        client.close()


def test_process_ends_with_its_parent() -> None:
    script = f"import subprocess; subprocess.Popen({[*MODULE, '--end-with-parent']!r}); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        assert json.loads(parent.stdout.readline())["url"]
        parent.kill()
        # Standard output is shared: its end means that the server is gone too.
        reader = threading.Thread(target=parent.stdout.read)
        reader.start()
        reader.join(10)
        assert not reader.is_alive()


def test_levers_over_http(sandbox: Sandbox) -> None:
    admin = Ec2Admin(sandbox.server.url)
    subnet = sandbox.built.node_subnets["a"]
    bucket = Bucket(1, 1)
    assert admin.set_knobs(detach_seconds=2, buckets={"DescribeVpcs": bucket}).buckets == {"DescribeVpcs": bucket}
    instance = admin.launch_instance("m5.large", subnet, groups=[sandbox.built.node_group], tags={"a": "b"})
    admin.change_instance_type(instance.id, "m5.xlarge")
    placed = admin.add_interface(sandbox.subnet_id, instance_id=instance.id, secondary_count=2)
    assert len(admin.assign_addresses(placed.id, 3)) == 3
    loose = admin.add_interface(sandbox.subnet_id, tags={"cluster": "c1"})
    assert [each.id for each in admin.leftovers(cluster="c1")] == [loose.id]
    admin.remove_interface(loose.id)
    admin.use_addresses(["100.64.0.5"])
    admin.free_addresses(["100.64.0.5"])
    assert admin.violations() == []
    admin.stop_instance(instance.id)
    admin.start_instance(instance.id)
    view = admin.view()
    assert [(each.instance_type, each.state) for each in view.instances] == [("m5.xlarge", "running")]
    assert view.free[sandbox.subnet_id] == 16384 - 5 - 6
    admin.terminate_instance(instance.id)
    assert admin.view().interfaces == []


def test_faults_and_record_over_http(sandbox: Sandbox) -> None:
    admin = Ec2Admin(sandbox.server.url)
    fault = Fault(action="DescribeVpcs", code="Unavailable", status=503)
    admin.add_faults(fault, fault)
    with pytest.raises(ClientError, match="Unavailable"):
        sandbox.client.describe_vpcs()
    admin.clear_faults()
    sandbox.client.describe_vpcs()
    assert admin.counts() == {"DescribeVpcs": {"OK": 1, "Unavailable": 1}}
    assert [call.code for call in admin.calls("DescribeVpcs")] == ["Unavailable", "OK"]
    admin.reset_calls()
    assert admin.calls() == []


@pytest.mark.parametrize(
    ("lever", "arguments"),
    [
        ("launch_instance", {"instance_type": "zz9.large", "subnet_id": "subnet-0"}),
        ("stop_instance", {"instance_id": "i-0"}),
        ("set_knobs", {"no_such_knob": 1}),
        ("set_knobs", {"detach_seconds": "soon"}),
        ("add_faults", {"faults": [{"code": "InternalError"}]}),
        ("stop_instance", {"colour": "red"}),
        ("no_such_lever", {}),
        ("_world", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_use_of_a_lever_is_told(sandbox: Sandbox, lever: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=lever):
        Ec2Admin(sandbox.server.url)._call(lever, None, **arguments)
