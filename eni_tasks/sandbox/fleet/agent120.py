"""The agent of Cilium 1.20: it hands out from blocks of its own list, and asks for addresses in `spec.ipam.pools`.

The blocks come from `status.eni.enis`: every prefix, and every other address as a block of one. A block that is no
longer shown while a pod uses it is dead for this agent's lifetime, also when it is shown again (cilium#47910): the
worst that an operator can meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from eni_tasks.sandbox.fleet.agents import Agent, Agent16, Body

POOL = "default"
PRE_ALLOCATE = 8  # until the object says another


class Agent120(Agent):
    """The agent of one node, of Cilium 1.20.

    `blocks` are those that it hands addresses out from, in the order of its list; `dead` are in use and were not shown
    once; `given_up` are shown but no longer listed, and are taken back on demand. `waiting` pods have no address.
    """

    wants_ipv6 = False

    def __init__(self, obj: Body, used: Iterable[str] | None = None) -> None:
        self.blocks: list[str] = []
        self.dead: set[str] = set()
        self.given_up: list[str] = []
        self.waiting = 0
        self.pre_allocate = PRE_ALLOCATE
        super().__init__(obj, used)

    def observe(self, obj: Body) -> None:
        """Take the blocks over that the object shows."""
        self.refusal = self._refusal(obj)
        self.pre_allocate = self._watermarks(obj).get("pre-allocate") or self.pre_allocate
        self._take(list(shown_blocks(obj)) or list(_listed(obj)))
        shown = obj.get("status", {}).get("eni", {}).get("enis", {}).values()
        known = any(interface.get("vpc", {}).get("primary-cidr") for interface in shown)
        has_ipv6 = any(":" in block for block in self.blocks)
        ready = known and bool(self._free_addresses()) and (has_ipv6 or not self.wants_ipv6)
        self.started = self.started or ready

    def _take(self, shown: list[str]) -> None:
        for block in [each for each in self.blocks if each not in shown]:
            if self._uses(block):
                self.dead.add(block)
            else:
                self.blocks.remove(block)
        self.given_up = [block for block in self.given_up if block in shown]
        self.blocks += [block for block in shown if block not in self.blocks and block not in self.given_up]

    def set_pod_count(self, count: int) -> None:
        """Let pods come or go; those for which there is no address wait.

        A block that was given up and is still shown is taken back at once, before the object says so.
        """
        kept = self.used[: max(0, count)]
        self.used, self.waiting = kept, max(0, count - len(kept)) if self.started else 0
        self._reclaim()
        come = self._free_addresses()[: self.waiting]
        self.used += come
        self.waiting -= len(come)

    def request(self, obj: Body) -> dict[str, Any]:
        """Returns the object with what this agent asks for and lists."""
        self._reclaim()
        self._give_up()
        wanted = {"ipv4-addrs": len(self.used) + self.waiting + self.pre_allocate}
        if self.wants_ipv6:
            wanted["ipv6-addrs"] = len(self.used) + self.waiting + self.pre_allocate
        listed = sorted(self.blocks, key=_order)
        held = [{"pool": POOL, "cidrs": listed, "allowFirstIP": True, "allowLastIP": True}] if listed else []
        pools = {"requested": [{"pool": POOL, "needed": wanted}], "allocated": held}
        spec = dict(obj["spec"])
        return {**obj, "spec": spec | {"ipam": dict(spec.get("ipam", {})) | {"pools": pools}}}

    def report(self, obj: Body) -> dict[str, Any]:
        """Returns the object with the status as this agent writes it: nothing is in use, as far as older ones count."""
        status = dict(obj.get("status", {}))
        if status.get("ipam", {}).get("used"):
            status["ipam"] = dict(status["ipam"]) | {"used": {}}
        return {**obj, "status": status}

    def _reclaim(self) -> None:
        """Take blocks back, the lowest first, until as many addresses are free as are wanted."""
        for block in sorted(self.given_up, key=_order):
            if self._free() >= self._wanted():
                return
            self.given_up.remove(block)
            self.blocks.append(block)

    def _give_up(self) -> None:
        """Give unused blocks up, from the end of the list, while as many addresses stay free as are wanted."""
        for block in [each for each in reversed(self.blocks) if ":" not in each]:
            if not self._uses(block) and self._free() - ip_network(block).num_addresses >= self._wanted():
                self.blocks.remove(block)
                self.given_up.append(block)
        self.blocks.reverse()  # its list turns round at every run

    def _wanted(self) -> int:
        return self.pre_allocate + self.waiting

    def _free(self) -> int:
        """The free addresses as the agent counts them: those of dead blocks, which nothing hands out, too."""
        sizes = sum(ip_network(block).num_addresses for block in self.blocks if ":" not in block)
        return sizes - sum(self._uses(block) for block in self.blocks)

    def _free_addresses(self) -> list[str]:
        alive = [block for block in self.blocks if block not in self.dead and ":" not in block]
        return [str(each) for block in alive for each in ip_network(block) if str(each) not in self.used]

    def _uses(self, block: str) -> int:
        network = ip_network(block)
        return sum(ip_address(address) in network for address in self.used)


class Agent120DualStack(Agent120):
    """The same with IPv6 switched on: it does not start without an IPv6 prefix."""

    wants_ipv6 = True


def agent_of(obj: Body, used: Iterable[str] | None = None) -> Agent:
    """Returns an agent of the kind that wrote an object.

    Args:
        obj: the object.
        used: as for `Agent`.
    """
    spec, in_use = obj.get("spec", {}), obj.get("status", {}).get("ipam", {}).get("used")
    if "instance-id" not in spec and "instance-id" in spec.get("eni", {}):
        return Agent16(obj, used)
    requested = spec.get("ipam", {}).get("pools", {}).get("requested", ())
    if in_use or not any(entry["pool"] == POOL for entry in requested):
        return Agent(obj, used)
    dual = any("ipv6-addrs" in entry.get("needed", {}) for entry in requested)
    return (Agent120DualStack if dual else Agent120)(obj, used)


def shown_blocks(obj: Body) -> Iterator[str]:
    """Yields the blocks that an object's interfaces show, without those that the node excludes."""
    eni = obj.get("spec", {}).get("eni", {})
    excluding: Mapping[str, str] = eni.get("exclude-interface-tags", {})
    for interface in obj.get("status", {}).get("eni", {}).get("enis", {}).values():
        by_tags = excluding and excluding.items() <= interface.get("tags", {}).items()
        if by_tags or interface.get("number", 0) < eni.get("first-interface-index", 0):
            continue
        prefixes = [ip_network(prefix) for prefix in interface.get("prefixes", ())]
        yield from map(str, prefixes)
        yield from interface.get("ipv6-prefixes", ())
        for address in interface.get("addresses", ()):
            if not any(ip_address(address) in prefix for prefix in prefixes):
                yield f"{address}/32"


def _listed(obj: Body) -> Iterator[str]:
    for entry in obj.get("spec", {}).get("ipam", {}).get("pools", {}).get("allocated", ()):
        if entry["pool"] == POOL:
            yield from entry.get("cidrs", ())


def _order(block: str) -> tuple[int, int]:
    network = ip_network(block)
    return network.version, int(network.network_address)
