"""A fleet and a node as `services.status` describes them, with something to say of each kind."""

from __future__ import annotations

from typing import Any

from eni_tasks.model.network import NodeName, SubnetId
from eni_tasks.model.work import WorkKind
from eni_tasks.services.status import FleetStatus, InterfaceStatus, Item, ItemState, NodeDetails, NodeStatus
from eni_tasks.state.events import Event
from eni_tasks.state.summary import BucketSummary, StateSummary, SubnetSummary, WorkState, WorkStatus, WorkSummary

NOW = 1_000_000.0
ACTION = "AssignPrivateIpAddresses"
WAITS = NodeStatus(
    node=NodeName("ip-10-0-1-2.eu-west-1.compute.internal"),
    instance="i-1",
    instance_type="m5.large",
    interfaces=2,
    available=8,
    used=7,
    needed=7,
    reason="deficit",
    trouble="subnet-0123456789abcdef0 has no free address left, and no other subnet matches",
    work=WorkStatus(state=WorkState.WAITING, until=NOW + 34),
)
FULL = NodeStatus(node=NodeName("full"), instance="i-2", needed=3, reason="at-capacity")
WELL = NodeStatus(node=NodeName("well"), instance="i-3", available=8, ready=True, reason="at-size")
IDLE_WORK = WorkSummary(pending_count=0, claimed_count=0, waiting_count=0, overdue_count=0, oldest_overdue_seconds=0.0)


def summary(**changes: Any) -> StateSummary:
    values: dict[str, Any] = {
        "now": NOW,
        "generation": "g",
        "pause": None,
        "work": dict.fromkeys(WorkKind, IDLE_WORK),
        "queues": {"ec2": 3, "apiserver": 0, "resync": 0},
        "buckets": {
            ACTION: BucketSummary(size=100, refill_per_second=5, tokens=12.7, share=0.5, throttled_at=NOW - 3),
            "Other": BucketSummary(size=0, refill_per_second=0, tokens=0, share=1, throttled_at=None),
        },
        "breakers": {},
        "subnets": (
            SubnetSummary(id=SubnetId("roomy"), availability_zone="a", free=500, reserved=20, cooling_down_until=None),
            SubnetSummary(
                id=SubnetId("tight"),
                availability_zone="b",
                free=5,
                reserved=3,
                cooling_down_until=NOW + 60,
                no_prefix_until=NOW + 90,
            ),
        ),
        "infrastructure_at": NOW - 12,
        "inventory_at": NOW - 30,
        "read_failure": "",
        "orphans_count": 0,
        "deficit_count": 0,
        "deficit_since": None,
    }
    return StateSummary(**(values | changes))


def fleet(**changes: Any) -> FleetStatus:
    values: dict[str, Any] = {
        "summary": summary(),
        "nodes": (WAITS, FULL, WELL),
        "total_count": 3,
        "ready_count": 1,
        "in_deficit_count": 1,
        "at_capacity_count": 1,
        "waiting_count": 1,
        "reasons": {"at-capacity": 1, "deficit": 1},
        "oldest_read_at": NOW - 130,
        "unread_count": 0,
        "creating": (NodeName("full"),),
    }
    return FleetStatus(**(values | changes))


ONE = NodeDetails(
    now=NOW,
    status=NodeStatus(
        node=NodeName("n"),
        instance="i-1",
        instance_type="m5.large",
        available=8,
        published=6,
        used=2,
        needed=4,
        reason="deficit",
        explanation=("n holds 8.", "4 more are needed."),
        trouble="EC2 said no",
        last_action="assigned 2",
    ),
    work={WorkKind.MAINTAIN: WorkStatus(state=WorkState.WAITING, until=NOW + 34)},
    interfaces=(
        InterfaceStatus(
            id="eni-1",
            device_index=0,
            subnet="subnet-1",
            primary_address="10.0.0.1",
            status="attached",
            used=1,
            addresses=("10.0.0.2", "10.0.0.3"),
            prefixes=("10.0.0.16/28",),
            address_count=18,
            items=(
                Item(label="10.0.0.2", state=ItemState.USED),
                Item(label="10.0.0.3", state=ItemState.NOT_SHOWN),
            ),
            room=7,
            subnet_room=12,
        ),
    ),
    facts_at=NOW - 50,
    facts_unknown="a mutation is under way",
    failures=3,
    journal="The journal is at step created of making eni-9; the next run goes on from there.",
    events=(Event(id="1000000000-0", what="Unlock", fields={"node": "n", "kinds": "maintain"}),),
)
