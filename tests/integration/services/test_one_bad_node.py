"""One bad node, subnet or type affects only itself; many nodes at once don't crowd one subnet (promises 6, 8)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from eni_tasks.model.network import NodeName
from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from pumped import System

BAD, GOOD_COUNT = NodeName("bad"), 99
PODS = {"first-interface-index": 1}
HOUR_SECONDS = 3600.0


def add_bad(system: System, kind: str) -> None:
    """Add the bad node, and whatever is wrong with it."""
    match kind:
        case "unknown type":
            system.add_node(BAD, eni={"instance-type": "zz9.large"})
        case "attach always refused":
            instance = system.add_node(BAD, eni=PODS)
            refusal = Fault(
                action="AttachNetworkInterface", code="InvalidParameterCombination", resource=instance.id, times=None
            )
            system.ec2.add_faults([refusal])
        case "instance gone":
            instance = system.add_node(BAD)
            system.ec2.terminate_instance(instance.id)
        case "absurd spec":
            system.add_node(BAD, ipam={"min-allocate": 2**40})
        case "no subnet":
            system.add_node(BAD, eni=PODS | {"subnet-tags": {"no": "where"}})


@pytest.mark.parametrize(
    ("kind", "most_calls"),
    [
        ("unknown type", 0),
        # Create, attach and delete at each try; the back-off doubles up to five minutes.
        ("attach always refused", 3 * (9 + 12 * 2)),
        ("instance gone", 0),
        ("absurd spec", 0),
        ("no subnet", 0),
    ],
)
def test_one_bad_node_of_a_hundred(system: System, kind: str, most_calls: int) -> None:
    add_bad(system, kind)
    for number in range(GOOD_COUNT):
        system.add_node(f"good-{number:02}")
    system.settle(within_seconds=10)
    assert all(len(system.pool(f"good-{number:02}")) == 8 for number in range(GOOD_COUNT))
    assert system.mutations()["Assign"] == GOOD_COUNT, "one for each"
    system.fresh()
    system.settle(within_seconds=HOUR_SECONDS)
    calls = system.mutations()
    assert "Assign" not in calls, "the good ones are left alone"
    assert (0 if not most_calls else 10) <= sum(calls.values()) <= most_calls
    if kind == "instance gone":
        assert system.reads().get("DescribeNetworkInterfaces", 0) <= 5, (
            "asked ever later, then with everything else only"
        )
    assert system.pool(BAD) == {}
    assert system.status(BAD).explanation


def test_trouble_of_the_account_is_tried_by_one(system: System) -> None:
    """B10: fifty nodes in deficit, and the account may have no more interfaces."""
    for number in range(50):
        system.add_node(f"node-{number:02}", eni=PODS)
    system.ec2.add_faults([Fault(action="CreateNetworkInterface", code="NetworkInterfaceLimitExceeded", times=None)])
    system.settle(within_seconds=600)
    assert system.mutations()["Create"] <= 1 + 600 / 60
    system.ec2.clear_faults()
    system.settle(within_seconds=300)
    assert all(system.pool(f"node-{number:02}") for number in range(50))


def test_six_nodes_and_two_subnets_with_room_for_three_interfaces_each(system: System) -> None:
    """All choose at once; none is refused, and none goes empty."""
    for cidr in ("10.0.32.0/27", "10.0.32.32/27"):  # 27 addresses: three interfaces with eight each
        system.built.world.add_subnet(system.built.vpc_id, "a", cidr, {"six": "yes"})
    names = [NodeName(f"node-{number}") for number in range(6)]
    for name in names:
        system.add_node(name, eni=PODS | {"subnet-tags": {"six": "yes"}})
    system.settle_reads()
    system.messages.waiting.clear()
    barrier = threading.Barrier(len(names))

    def run(name: NodeName) -> None:
        barrier.wait()
        system.services.maintain.run(name)

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert system.mutations() == {"Create": 6, "Attach": 6, "Modify": 6}
    assert all(call.effect for call in system.ec2.calls("CreateNetworkInterface"))
    system.settle()
    assert [len(system.pool(name)) for name in names] == [8] * 6
    assert system.clean()
