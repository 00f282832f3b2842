"""The nodes: instances in the sandbox's EC2, their CiliumNodes, and an agent each; and pods that come and go there."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.nodes import NODES_PATH
from eni_tasks.errors import ConflictError
from eni_tasks.sandbox.ec2.admin import Ec2Admin
from eni_tasks.sandbox.fleet.agent120 import agent_of
from eni_tasks.sandbox.fleet.agents import Agent

TYPES = ("m5.large", "t3.medium", "c5.large", "m5.xlarge", "t3.large", "r5.xlarge")
_REPORT_TRIES = 20


class Fleet:
    """The nodes, as their machines and agents make them.

    Args:
        ec2: the control API of the sandbox's EC2.
        world: what the EC2 server printed about its network.
        kube: the way to the Kubernetes API, the sandbox's or a real one.
        report_seconds: an agent reports at most this often; Cilium's own default is 15 s.
    """

    def __init__(self, ec2: Ec2Admin, world: Mapping[str, Any], kube: KubeClient, report_seconds: float = 0.0) -> None:
        self.ec2 = ec2
        self._world = world
        self._kube = kube
        self._report_seconds = report_seconds
        self._agents: dict[str, Agent] = {}
        self._report_at: dict[str, float] = {}  # earliest next report by node, monotonic
        self.names: list[str] = []

    # -- machines and objects ----------------------------------------------------------------------
    def add(  # noqa: PLR0913 - what a caller may choose, each with a default
        self,
        count: int,
        *,
        types: tuple[str, ...] = TYPES,
        ipam: Mapping[str, int] | None = None,
        home: str = "node_subnets",
        first_interface_index: int = 0,
        agent: type[Agent] = Agent,
    ) -> None:
        """Launch `count` instances of mixed types, and create their objects as agents do.

        Args:
            count: how many.
            types: in turn.
            ipam: the configured watermarks, such as {"pre-allocate": 8}.
            home: where the instances are: "node_subnets", or "pod_subnets" for a fleet that those are too small for.
            first_interface_index: pods get addresses of interfaces from this device index on.
            agent: the kind of agent.
        """
        first = len(self.names)
        with ThreadPoolExecutor(4) as threads:
            self.names += threads.map(
                lambda i: self._add(i, types[i % len(types)], ipam, home, first_interface_index, agent),
                range(first, first + count),
            )

    def keep(self, count: int) -> None:
        """Bring the fleet to `count` nodes, whatever is there already.

        Nodes of an earlier run are taken over; one whose instance is gone is replaced, as a cluster's autoscaler does.

        Args:
            count: how many.
        """
        alive = {instance.id for instance in self.ec2.view().instances if instance.state in ("pending", "running")}
        instances = {obj["metadata"]["name"]: _instance_id(obj) for obj in self.objects()}
        self.names = [node_name(number) for number in range(count)]
        for number, name in enumerate(self.names):
            if name in instances and instances[name] not in alive:
                self._call("DELETE", f"/{name}", None)
            if instances.get(name) not in alive:
                self._add(number, TYPES[number % len(TYPES)], None, "node_subnets")

    def _add(  # noqa: PLR0913 - as `add`
        self,
        number: int,
        instance_type: str,
        ipam: Mapping[str, int] | None,
        home: str,
        first_interface_index: int = 0,
        agent: type[Agent] = Agent,
    ) -> str:
        zones = sorted(self._world[home])
        subnet = self._world[home][zones[number % len(zones)]]
        instance = self.ec2.launch_instance(instance_type, subnet, groups=[self._world["node_group"]])
        name = node_name(number)
        spec = agent.spec(
            instance,
            watermarks=ipam or {},
            first_interface_index=first_interface_index,
            subnet_tags={"purpose": "pods"} if number % 4 == 0 else {},
        )
        body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": spec}
        self._call("POST", "", body)
        return name

    def objects(self) -> Iterator[dict[str, Any]]:
        """Returns all CiliumNodes as the API server has them."""
        yield from self._call("GET", "", None)["items"]

    def get(self, name: str) -> dict[str, Any]:
        """Returns one CiliumNode as the API server has it."""
        return self._call("GET", f"/{name}", None)

    # -- agents ------------------------------------------------------------------------------------
    def agent(self, obj: Mapping[str, Any]) -> Agent:
        """Returns the agent of a node, after it has observed its object.

        An object that was deleted and created again has another agent.
        """
        name, agent = obj["metadata"]["name"], self._agents.get(obj["metadata"]["name"])
        if agent is None or agent.uid != obj["metadata"]["uid"]:
            agent = self._agents[name] = agent_of(obj)
            self._report_at.pop(name, None)
        else:
            agent.observe(obj)
        return agent

    def use(self, obj: Mapping[str, Any], count: int) -> None:
        """Let pods come or go on a node until it has `count`, and let its agent report them; those in use stay.

        Args:
            obj: the node's object, as just read.
            count: pods, at most as many as the agent has addresses for.
        """
        agent = self.agent(obj)
        before = set(agent.used)
        agent.set_pod_count(count)
        if before != set(agent.used):
            self.ec2.use_addresses(agent.used)
            self.ec2.free_addresses(sorted(before.difference(agent.used)))
        self.report(obj)

    def report(self, obj: Mapping[str, Any]) -> bool:
        """Let a node's agent write its spec and its whole status, if they differ and its next report is due.

        Args:
            obj: the node's object; a newer version is read if it is not the latest.

        Returns:
            Whether the object shows what the agent says.

        Raises:
            ConflictError: other writers were faster at every try.
            NodeGone: the node was deleted.
        """
        name = obj["metadata"]["name"]
        for attempt in range(1, _REPORT_TRIES + 1):
            agent = self.agent(obj)
            asked, changed = agent.request(obj), agent.report(obj)
            if asked["spec"] == obj["spec"] and changed["status"] == obj.get("status", {}):
                return True
            if time.monotonic() < self._report_at.get(name, 0.0):
                return False
            try:
                if asked["spec"] != obj["spec"]:
                    changed = agent.report(self._call("PUT", f"/{name}", asked))
                self._call("PUT", f"/{name}/status", changed)
            except ConflictError:
                if attempt == _REPORT_TRIES:
                    raise
                obj = self.get(name)
            else:
                self._report_at[name] = time.monotonic() + self._report_seconds
                return True
        return False

    def exchange_agent(self, name: str, kind: type[Agent]) -> None:
        """Start an agent of another version on a node; its pods go on, and it reports at once.

        Args:
            name: the node.
            kind: the kind of agent.
        """
        obj = self.get(name)
        before = self.agent(obj)
        self._agents[name] = kind(obj, before.used)
        self._report_at.pop(name, None)
        self.report(obj)

    def _call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        node, what = path.strip("/").partition("/")[0], f"{method} ciliumnodes{path}"
        answer: dict[str, Any] = msgspec.json.decode(
            self._kube.call(method, NODES_PATH + path, what=what, node=node, body=body)
        )
        return answer


def node_name(number: int) -> str:
    """Returns the name of the node with that number."""
    return f"node-{number:04d}"


def _instance_id(obj: Mapping[str, Any]) -> str:
    spec = obj["spec"]
    found: str = spec.get("instance-id") or spec.get("eni", {}).get("instance-id", "")
    return found


class Agents:
    """Lets pods come and go, in a thread if started.

    Args:
        fleet: the nodes.
        changes_per_second: how many nodes change their usage in a second.
        seed: makes a run repeatable.
    """

    def __init__(self, fleet: Fleet, changes_per_second: float, seed: int) -> None:
        self._fleet = fleet
        self._pause_seconds = 1.0 / changes_per_second
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agents", daemon=True)

    def start(self) -> None:
        """Let pods come and go."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the pods as they are."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_seconds):
            self.change_one()

    def change_one(self) -> None:
        """Let a few pods come to, or go from, one node.

        Raises:
            NodeGone: the node was deleted.
        """
        obj = self._fleet.get(self._random.choice(self._fleet.names))
        used = len(self._fleet.agent(obj).used)
        self._fleet.use(obj, used + self._random.randint(-3, 4))
