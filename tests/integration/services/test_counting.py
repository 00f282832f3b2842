"""What maintaining counts: what EC2 confirmed, by subnet, and each attempt with its outcome (B80)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pumped import System

OPS = ("ipam_ip_allocation_ops", "ipam_ip_release_ops", "ipam_interface_creation_ops")
ATTEMPTS = "ipam_allocation_duration_seconds"


def counted(system: System) -> tuple[dict[tuple[str, str], float], dict[tuple[str, ...], float]]:
    """Operations by metric and subnet, and attempts by their labels."""
    ops: dict[tuple[str, str], float] = {}
    attempts: dict[tuple[str, ...], float] = {}
    for (name, part, labels), value in system.services.counters.drain().items():
        if name in OPS:
            ops[name, labels[0]] = value
        elif name == ATTEMPTS and part != "sum":
            attempts[labels] = attempts.get(labels, 0) + value
    return ops, attempts


def test_assigned_addresses_and_created_interfaces_are_apart(system: System) -> None:
    instance = system.add_node(ipam={"pre-allocate": 12})
    system.settle()
    first, second = system.interfaces(instance)
    ops, attempts = counted(system)
    expected: dict[tuple[str, str], float] = {("ipam_interface_creation_ops", second.subnet_id): 1}
    for interface in (first, second):
        key = ("ipam_ip_allocation_ops", interface.subnet_id)
        expected[key] = expected.get(key, 0) + len(interface.addresses)
    assert ops == expected
    assert attempts == {
        ("allocateIP", "success", first.subnet_id): 1,
        ("createInterfaceAndAllocateIP", "success", second.subnet_id): 1,
    }


def test_what_ec2_refuses_is_an_attempt_and_no_address(system: System) -> None:
    system.add_node()
    system.settle_reads()
    system.ec2.add_faults([Fault(action="AssignPrivateIpAddresses", code="InvalidParameterValue")])
    system.pump()
    ops, attempts = counted(system)
    assert ops == {}
    assert [labels[:2] for labels in attempts] == [("allocateIP", "failed")]
    assert all(subnet for _, _, subnet in attempts)


def test_waits_for_a_token_are_counted_by_action(system: System) -> None:
    system.add_node()
    system.settle()
    waits = [part for part in system.services.counters.drain() if part.name == "ec2_api_rate_limit_duration_seconds"]
    assert {part.labels for part in waits} == {("AssignPrivateIpAddresses",)}
