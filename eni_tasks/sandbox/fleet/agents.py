"""The agents of Cilium, as far as an operator sees them: what they write into their object and what they accept.

An agent holds what the object last showed it and which addresses its pods use. It does no I/O: `nodes` hands
it the object and writes what it returns. `Agent` is that of Cilium 1.8 to 1.19; `Agent16` that of 1.6; `agent120` has
that of 1.20.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eni_tasks.sandbox.ec2.records import Instance

Body = Mapping[str, Any]
# States of an address in `status.ipam.release-ips`. The operator writes the first and the last, the agent the others.
MARKED, READY, KEPT, RELEASED = "marked-for-release", "ready-for-release", "do-not-release", "released"
# An agent with none of the watermarks set starts with its own address and that of the health endpoint.
LEAST_ADDRESSES = 2


class Agent:
    """The agent of one node, from Cilium 1.8 to 1.19.

    It answers the release hand-shake of 1.12 and later; an operator that does not begin one gets no answer. One that
    is `silent` gives none, as agents before 1.12; one that is `unsteady` takes back what it agreed to, as no real one
    does.

    Args:
        obj: its CiliumNode.
        used: the addresses of running pods; those that the object's status shows as used if None.
    """

    silent = False
    unsteady = False

    def __init__(self, obj: Body, used: Iterable[str] | None = None) -> None:
        self.uid: str = obj["metadata"]["uid"]
        self.used: list[str] = sorted(obj.get("status", {}).get("ipam", {}).get("used", {}) if used is None else used)
        self.pool: dict[str, str] = {}  # of the last object that it accepted: address -> interface
        self._leaving: set[str] = set()  # addresses that no further pod gets, because they may be released
        self.started = bool(self.used)
        self.refusal = ""
        self.observe(obj)

    @classmethod
    def spec(
        cls,
        instance: Instance,
        *,
        watermarks: Mapping[str, int],
        first_interface_index: int,
        subnet_tags: Mapping[str, str],
    ) -> dict[str, Any]:
        """Returns the spec with which an agent creates its object.

        Args:
            instance: its node's.
            watermarks: as configured, such as {"pre-allocate": 8}.
            first_interface_index: pods get addresses of interfaces from this device index on.
            subnet_tags: of the subnets that new interfaces may be in.
        """
        eni = {
            "instance-type": instance.instance_type,
            "vpc-id": instance.vpc_id,
            "availability-zone": instance.availability_zone,
            "first-interface-index": first_interface_index,
            "subnet-tags": dict(subnet_tags),
        }
        return cls._in_its_places(instance, eni, watermarks)

    @classmethod
    def _in_its_places(cls, instance: Instance, eni: dict[str, Any], watermarks: Mapping[str, int]) -> dict[str, Any]:
        """The spec of which `eni` holds what all kinds of agents write there."""
        eni["node-subnet-id"] = instance.subnet_id
        return {"instance-id": instance.id, "eni": eni, "ipam": dict(watermarks)}

    def observe(self, obj: Body) -> None:
        """Take a new version of the object over, or ignore it and remember why (`refusal`)."""
        self.refusal = self._refusal(obj)
        if self.refusal:
            return
        self.pool = {address: entry.get("resource", "") for address, entry in _pool(obj).items()}
        states = {} if self.silent else _release_states(obj)
        self._leaving = {address for address, state in states.items() if state in (MARKED, READY, RELEASED)}
        # An agent starts once, and keeps running when its pool shrinks.
        self.started = self.started or (len(self.pool) >= self._required(obj) and bool(_interfaces(obj)))

    def set_pod_count(self, count: int) -> None:
        """Let pods come or go until there are `count`, as far as there are free addresses.

        Pods that stay keep their addresses, also one that has left the pool. No pod comes before the agent has
        started.
        """
        free = sorted(address for address in self.pool if address not in self.used and self._usable(address))
        come = free if self.started else []
        self.used = [*self.used, *come][: max(0, count)]

    def request(self, obj: Body) -> dict[str, Any]:
        """Returns the object with the spec as this agent writes it; most agents leave it as it is.

        Args:
            obj: the version that the write is to replace.
        """
        return dict(obj)

    def report(self, obj: Body) -> dict[str, Any]:
        """Returns the object with the whole status as this agent writes it.

        Args:
            obj: the version that the write is to replace.
        """
        status = dict(obj.get("status", {}))
        ipam = dict(status.get("ipam", {}))
        before = ipam.get("used", {})
        used = {address: before.get(address) or self._entry(address) for address in self.used}
        for field, value in (("used", used), ("release-ips", self._answers(_release_states(obj)))):
            if value or field in ipam:
                ipam[field] = value
        if ipam:
            status["ipam"] = ipam
        return {**obj, "status": status}

    def _answers(self, states: Mapping[str, str]) -> dict[str, str]:
        """The release states with this agent's answers: it agrees to lose an address that no pod uses."""
        if self.refusal or not self.pool or self.silent:
            return dict(states)
        answers: dict[str, str] = {}
        for address, state in states.items():
            in_pool = address in self.pool
            if state == MARKED or (state == READY and self.unsteady):
                answers[address] = READY if in_pool and address not in self.used and state == MARKED else KEPT
            elif state != RELEASED or in_pool:  # else the hand-shake is over, and its entry goes
                answers[address] = state
        return answers

    def _entry(self, address: str) -> dict[str, str]:
        entry = {"owner": f"default/pod-{address}"}
        return entry | ({"resource": self.pool[address]} if address in self.pool else {})

    def _refusal(self, obj: Body) -> str:
        """Why an agent ignores a version of its object: it is not consistent; "" if it is."""
        interfaces = _interfaces(obj)
        for identifier, interface in interfaces.items():
            vpc = interface.get("vpc", {})
            if not vpc.get("primary-cidr"):
                return f"VPC Primary CIDR not set for ENI {identifier}"
            if not all(vpc.get("cidrs", ())):
                return f"VPC CIDR not set for ENI {identifier}"
        for address, entry in _pool(obj).items():
            interface = interfaces.get(entry.get("resource", ""))
            if interface is None:
                return f"ENI {entry.get('resource', '')} not found in status"
            if address not in interface.get("addresses", ()):
                return f"Address {address} not found on ENI {entry['resource']}"
        return ""

    def _required(self, obj: Body) -> int:
        """How many addresses an agent waits for before it starts."""
        watermarks = self._watermarks(obj)
        return watermarks.get("min-allocate") or watermarks.get("pre-allocate") or LEAST_ADDRESSES

    def _watermarks(self, obj: Body) -> Mapping[str, int]:
        found: Mapping[str, int] = obj.get("spec", {}).get("ipam", {})
        return found

    def _usable(self, address: str) -> bool:
        """Whether a pod can get an address of the pool."""
        return address not in self._leaving


class Agent16(Agent):
    """The agent of Cilium 1.6: all its fields are in `spec.eni`, and it takes every version of its object.

    It knows no release hand-shake. A pod gets an address only if the status shows its interface, with the subnet
    that names the gateway.
    """

    def __init__(self, obj: Body, used: Iterable[str] | None = None) -> None:
        self._interfaces_with_gateway: set[str] = set()
        super().__init__(obj, used)

    @classmethod
    def _in_its_places(cls, instance: Instance, eni: dict[str, Any], watermarks: Mapping[str, int]) -> dict[str, Any]:
        index = eni["first-interface-index"] or 1  # a configured index of 0 stays 1
        own = {"instance-id": instance.id, "first-interface-index": index, "pre-allocate": 8}
        return {"eni": eni | own | dict(watermarks), "ipam": {}}

    def observe(self, obj: Body) -> None:
        """Take a new version of the object over."""
        found = _interfaces(obj).items()
        self._interfaces_with_gateway = {key for key, each in found if each.get("subnet", {}).get("cidr")}
        super().observe(obj)

    def _refusal(self, obj: Body) -> str:
        del obj
        return ""

    def _answers(self, states: Mapping[str, str]) -> dict[str, str]:
        return dict(states)

    def _watermarks(self, obj: Body) -> Mapping[str, int]:
        found: Mapping[str, int] = obj.get("spec", {}).get("eni", {})
        return found

    def _usable(self, address: str) -> bool:
        return self.pool[address] in self._interfaces_with_gateway


def _pool(obj: Body) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("spec", {}).get("ipam", {}).get("pool", {})
    return found


def _interfaces(obj: Body) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.get("status", {}).get("eni", {}).get("enis", {})
    return found


def _release_states(obj: Body) -> Mapping[str, str]:
    found: Mapping[str, str] = obj.get("status", {}).get("ipam", {}).get("release-ips", {})
    return found
