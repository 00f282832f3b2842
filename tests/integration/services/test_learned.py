"""What is learned from a refusal expires, and trouble of the account or of EC2 is not the node's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from test_ec2_refuses import refuse

from eni_tasks.model.network import NodeName
from eni_tasks.model.work import WorkKind

if TYPE_CHECKING:
    from pumped import System

NODE = NodeName("node")
PODS = {"first-interface-index": 1}
WITHOUT_FREE = {"eni": PODS}  # the first interface is not for pods: no address until one is created


def attempts(system: System, word: str) -> int:
    return system.mutations().get(word, 0)


# -- a further interface was refused -------------------------------------------------------------
@pytest.fixture
def refused(system: System) -> System:
    """A node whose second interface was refused once, because a volume took the slot."""
    refuse(system, "AttachNetworkInterface", "AttachmentLimitExceeded", times=1)
    system.add_node(ipam={"pre-allocate": 12})
    system.settle(within_seconds=30)
    assert attempts(system, "Attach") == 1
    system.fresh()
    return system


def test_a_refused_interface_is_a_deficit_with_a_reason(refused: System) -> None:
    status = refused.status()
    assert (status.available, status.needed, status.ready, status.reason) == (9, 3, False, "interface-refused")
    assert "EC2 refused a further interface" in status.explanation[-1]
    assert "eni-tasks maintain node" in status.explanation[-1]
    error = refused.object()["status"]["ipam"]["operator-status"]["error"]
    assert error == status.explanation[-1]


def test_it_is_not_tried_before_ten_minutes_and_then_again(refused: System) -> None:
    refused.settle(within_seconds=500)
    assert refused.mutations() == {}
    refused.settle(within_seconds=200)
    assert (attempts(refused, "Attach"), len(refused.pool())) == (1, 12)
    assert refused.status().ready


def test_each_further_refusal_doubles_the_wait_up_to_six_hours(refused: System) -> None:
    refuse(refused, "AttachNetworkInterface", "AttachmentLimitExceeded", times=20)
    refused.settle(within_seconds=24 * 3600)
    # After 10, 20, 40, 80, 160 and 320 minutes, then every 6 hours.
    assert attempts(refused, "Attach") in (8, 9)
    assert refused.clean()


def test_a_person_has_it_tried_at_once(refused: System) -> None:
    refused.services.admin.enqueue(WorkKind.MAINTAIN, NODE)
    refused.settle(within_seconds=10)
    assert (attempts(refused, "Attach"), len(refused.pool())) == (1, 12)


def test_another_type_is_tried_at_once(refused: System) -> None:
    refused.change("node", lambda body: body["spec"]["eni"].update({"instance-type": "c5.large"}))
    refused.settle(within_seconds=60)
    assert attempts(refused, "Attach") == 1
    assert refused.status().ready


# -- back-off ------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", ["Unavailable", "InternalError"])
def test_an_empty_node_is_served_soon_after_ec2_answers_again(system: System, code: str) -> None:
    refuse(system, "AssignPrivateIpAddresses", code, times=1000)
    system.add_node()
    system.settle(within_seconds=300)
    assert attempts(system, "Assign") >= 8
    system.ec2.clear_faults()
    system.settle(within_seconds=32)
    assert len(system.pool()) == 8


@pytest.mark.parametrize("code", ["Unavailable", "InvalidNetworkInterfaceID.NotFound", "IncorrectState"])
def test_the_waits_after_a_refused_attach_grow(system: System, code: str) -> None:
    refuse(system, "AttachNetworkInterface", code, times=1000)
    system.add_node(**WITHOUT_FREE)
    system.settle(within_seconds=150)
    assert attempts(system, "Attach") <= 14
    assert sum(system.reads().values()) <= 40


def test_no_interface_is_created_for_an_instance_that_ec2_does_not_know(system: System) -> None:
    refuse(system, "AttachNetworkInterface", "InvalidInstanceID.NotFound", times=1000)
    instance = system.add_node(**WITHOUT_FREE)
    system.settle_reads()
    system.ec2.terminate_instance(instance.id)
    system.settle(within_seconds=300)
    assert attempts(system, "Create") == 1
    assert system.clean()


# -- rights --------------------------------------------------------------------------------------
def test_a_missing_right_is_not_taken_for_an_answer(system: System) -> None:
    system.ec2.set_knobs(denied_actions=("DescribeInstanceTypes",))
    system.add_node()
    system.settle(within_seconds=5)
    assert system.status().reason == "limits-unknown"
    system.ec2.set_knobs(denied_actions=())
    report = system.services.admin.resume()
    assert report["closed"] == ["DescribeInstanceTypes"]
    system.settle(within_seconds=1)
    assert system.status().ready


def test_an_interface_that_cannot_be_flagged_serves_pods(system: System) -> None:
    system.ec2.set_knobs(denied_actions=("ModifyNetworkInterfaceAttribute",))
    instance = system.add_node(**WITHOUT_FREE)
    system.settle(within_seconds=5)
    assert len(system.pool()) == 8
    system.use(8)
    system.settle(within_seconds=30)
    assert len(system.pool()) == 16
    assert "ModifyNetworkInterfaceAttribute" in system.object()["status"]["ipam"]["operator-status"]["error"]
    system.ec2.set_knobs(denied_actions=())
    system.services.admin.resume()
    system.settle(within_seconds=30)
    created = [each for each in system.interfaces(instance) if each.attachment.device_index > 0]
    assert all(each.attachment.delete_on_termination for each in created)


# -- faults of this system -----------------------------------------------------------------------
def test_an_unexpected_error_gives_the_node_back_at_once(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    system.add_node()
    system.settle_reads()

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a fault of this system")

    with monkeypatch.context() as patched:
        patched.setattr(system.services.ec2, "assign_addresses", broken)
        with pytest.raises(ZeroDivisionError):
            system.services.maintain.run(NODE)
    assert system.services.state.queue.claim(WorkKind.MAINTAIN, NODE) is not None


# -- old facts -----------------------------------------------------------------------------------
@pytest.mark.parametrize("action", ["DescribeSubnets", "DescribeNetworkInterfaces"])
def test_nothing_is_changed_on_facts_that_no_read_confirms(system: System, action: str) -> None:
    system.add_node()
    system.settle()
    system.ec2.set_knobs(denied_actions=(action,))
    system.later(301)
    system.fresh()
    system.use(8)
    system.settle(within_seconds=30)
    system.resync()
    assert system.mutations() == {}
    status = system.status()
    assert (status.reason, status.ready) == ("facts-too-old", False)
    assert action in status.explanation[-1]
    system.ec2.set_knobs(denied_actions=())
    system.resync()
    assert attempts(system, "Assign") == 1


def test_one_good_read_of_an_instance_does_not_hide_that_full_reads_fail(system: System) -> None:
    system.add_node()
    system.settle()
    system.ec2.set_knobs(denied_actions=("DescribeSubnets",))
    system.resync()
    failure = system.services.state.summary.read(()).read_failure
    assert "DescribeSubnets" in failure
    system.services.refresh.read_node(NODE)
    assert system.services.state.summary.read(()).read_failure == failure
