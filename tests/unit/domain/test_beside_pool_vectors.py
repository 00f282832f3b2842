"""Vectors of Cilium 1.20 about IPv6, surge and capacity: the calls in their order, each planned on EC2's answer.

The vectors know of no IPv6 block of a subnet; where one is asked for IPv6, the subnets have one.
"""

from __future__ import annotations

from ipaddress import IPv6Network
from typing import Any

import msgspec
import pytest
from vector_world import POLICY, Vector, cases, limits, load, node_state, required, with_interfaces

from eni_tasks.domain import capacity, ipv6, setbacks
from eni_tasks.domain.planner import plan
from eni_tasks.model.network import Interface
from eni_tasks.model.node import Node
from eni_tasks.model.plan import Action, Assign, AssignIpv6Prefix, CreateInterface
from eni_tasks.model.state import NodeState

NOW = 1000.0
VECTORS = load("multipool-1.20")
OURS = msgspec.structs.replace(POLICY, ipv6=True)
PREFIX = "2001:db8:0:1:aaaa::/80"


def chosen(category: str, *words: str) -> list[Any]:
    return cases([v for v in VECTORS if v["category"] == category and any(word in v["id"] for word in words)])


class Play:
    """Plans, answers as the vector's EC2 does, and plans again."""

    def __init__(self, vector: Vector) -> None:
        state = node_state(vector)
        subnets = {
            name: msgspec.structs.replace(subnet, ipv6_cidr=str(IPv6Network("2001:db8::/64")))
            for name, subnet in state.infrastructure.subnets.items()
        }
        if vector["id"] == "mp20-alloc-ipv6-twice":
            subnets["subnet-b"] = msgspec.structs.replace(subnets["subnet-a"], id="subnet-b")
        infrastructure = msgspec.structs.replace(state.infrastructure, subnets=subnets)
        self.state = msgspec.structs.replace(state, infrastructure=infrastructure)
        succeeds = "fixed_world" in vector
        errors = {} if succeeds else vector["input"].get("ec2_errors", {})
        self.errors = {action: list(results) for action, results in errors.items()}
        self.calls: list[dict[str, Any]] = []

    def run(self) -> None:
        while (action := plan(self.state, OURS, NOW).action) is not None:
            self.calls.append(shown(action))
            refused = (self.errors.get(self.calls[-1]["op"]) or [None]).pop(0)
            self.state = self.after_refusal(action) if refused else with_interfaces(self.state, self.after(action))
            assert len(self.calls) < 10

    def after_refusal(self, action: Action) -> NodeState:
        """What a run learns."""
        if isinstance(action, AssignIpv6Prefix):
            again = setbacks.again(self.state.memory.ipv6, "refused", NOW)
            memory = msgspec.structs.replace(self.state.memory, ipv6=again)
            return msgspec.structs.replace(self.state, memory=memory)
        assert isinstance(action, Assign)
        return msgspec.structs.replace(self.state, cooling_down=frozenset({action.subnet_id}))

    def after(self, action: Action) -> tuple[Interface, ...]:
        interfaces = self.state.interfaces or ()
        if isinstance(action, Assign):
            return self.grown(action.interface_id, action.count)
        if isinstance(action, AssignIpv6Prefix):
            changed = msgspec.structs.replace(self.interface(action.interface_id), ipv6_prefixes=(PREFIX,))
            return tuple(changed if each.id == changed.id else each for each in interfaces)
        assert isinstance(action, CreateInterface)
        created = Interface(
            id="eni-new",
            subnet_id=action.subnet_id,
            vpc_id=interfaces[0].vpc_id,
            primary_address="10.9.0.4",
            device_index=action.device_index,
            attachment_status="attached",
            addresses=tuple(f"10.9.1.{number}" for number in range(action.secondary_count)),
            ipv6_prefixes=(PREFIX,) if action.ipv6_prefix else (),
            delete_on_termination=True,
        )
        return (*interfaces, created)

    def interface(self, name: str) -> Interface:
        return next(each for each in self.state.interfaces or () if each.id == name)

    def grown(self, name: str, count: int) -> tuple[Interface, ...]:
        more = tuple(f"10.8.{len(self.calls)}.{number}" for number in range(count))
        old = self.interface(name)
        changed = msgspec.structs.replace(old, addresses=old.addresses + more)
        return tuple(changed if each.id == name else each for each in self.state.interfaces or ())


def shown(action: Action) -> dict[str, Any]:
    if isinstance(action, AssignIpv6Prefix):
        return {"op": "AssignIpv6Addresses", "eni": action.interface_id, "ipv6_prefix_count": 1}
    if isinstance(action, Assign):
        return {"op": "AssignPrivateIpAddresses", "eni": action.interface_id, "count": action.count}
    assert isinstance(action, CreateInterface)
    call = {
        "op": "CreateNetworkInterface",
        "subnet": action.subnet_id,
        "description": action.description,
        "groups": list(action.security_groups),
        "secondary_count": action.secondary_count,
    }
    return call | ({"ipv6_prefix_count": 1} if action.ipv6_prefix else {})


@pytest.mark.parametrize("vector", chosen("allocate", "ipv6", "surge") + chosen("create", "ipv6"))
def test_the_calls_in_their_order(vector: Vector) -> None:
    play, expected = Play(vector), required(vector)
    figures = plan(play.state, OURS, NOW).figures
    stats = {key: getattr(figures, key) for key in ("available", "used", "needed", "excess")}
    assert stats == expected["stats"]
    play.run()
    calls = [call for call in expected["calls"] if call["op"] not in ("AttachNetworkInterface", MODIFY)]
    if vector["id"] == "mp20-alloc-ipv6-need-only":
        # By the vector's own note: any eligible interface in a dual-stack subnet will do.
        calls = [call | {"eni": "eni-0"} for call in calls]
    elif vector["id"] == "mp20-alloc-ipv6-twice":
        calls[2] |= {"subnet": "subnet-b"}  # the other one said that it is full
    assert play.calls == calls


MODIFY = "ModifyNetworkInterfaceAttribute"


@pytest.mark.parametrize("vector", chosen("detect", "dual", "downgraded"))
def test_whether_a_prefix_is_missing(vector: Vector) -> None:
    given = vector["input"]
    enis = [
        {
            "id": each["id"],
            "number": number,
            "subnet": "s",
            "ip": f"10.0.{number}.4",
            "addresses": [],
            "security_groups": [],
            "tags": {"excluded": "yes"} if each["excluded"] else {},
            "ipv6_prefixes": each["ipv6_prefixes"],
        }
        for number, each in enumerate(given["enis"])
    ]
    eni = {"instance-type": "m5.large", "exclude-interface-tags": {"excluded": "yes"}}
    obj = dict(given["cilium_node"])
    obj["spec"] = obj["spec"] | {"instance-id": "i-1", "eni": eni}
    ec2 = {"enis": enis, "limits": {}}
    state = node_state(vector | {"input": {"cilium_node": obj, "ec2": ec2}})
    assert int(ipv6.missing(state)) == required(vector)["ipv6_prefixes_needed"]


@pytest.mark.parametrize("vector", chosen("max_allocatable", ""))
def test_capacity(vector: Vector) -> None:
    given = vector["input"]
    found = limits(given["instance_type"], given["limits"])
    assert found is not None
    node = Node(
        name="n",
        uid="u",
        first_interface_index=given["first_interface_index"],
        use_primary_address=given["use_primary_address"],
    )
    assert capacity.instance_capacity(found, node) == required(vector)["max_allocatable"]
