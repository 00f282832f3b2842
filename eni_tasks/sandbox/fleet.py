"""The simulated fleet: instances in the sandbox's EC2, their CiliumNodes, and agents whose pods come and go."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.objects import NODES_PATH
from eni_tasks.sandbox.ec2.admin import Ec2Admin

TYPES = ("m5.large", "t3.medium", "c5.large", "m5.xlarge", "t3.large", "r5.xlarge")


class Fleet:
    """Nodes as their machines and agents make them.

    Args:
        ec2: levers of the sandbox's EC2.
        world: what the EC2 server said about its network.
        kube: the way to the Kubernetes API, the sandbox's or a real one.
    """

    def __init__(self, ec2: Ec2Admin, world: Mapping[str, Any], kube: KubeClient) -> None:
        self.ec2 = ec2
        self._world = world
        self._kube = kube
        self.names: list[str] = []

    def add(
        self,
        count: int,
        *,
        types: tuple[str, ...] = TYPES,
        ipam: Mapping[str, int] | None = None,
        home: str = "node_subnets",
        first_interface_index: int = 0,
    ) -> None:
        """Launch `count` instances of mixed types, and create their objects as agents do.

        Args:
            count: how many.
            types: in turn.
            ipam: watermarks of `spec.ipam`, such as {"pre-allocate": 8}.
            home: where the instances live: "node_subnets", or "pod_subnets" for a fleet that those are too small for.
            first_interface_index: pods get addresses of interfaces from this device index on.
        """
        first = len(self.names)
        with ThreadPoolExecutor(4) as threads:
            self.names += threads.map(
                lambda i: self._add(i, types[i % len(types)], ipam, home, first_interface_index),
                range(first, first + count),
            )

    def keep(self, count: int) -> None:
        """Bring the fleet to `count` nodes, whatever is there already.

        Nodes of an earlier run are taken over; one whose instance is gone is replaced, as a cluster's autoscaler does.

        Args:
            count: how many.
        """
        alive = {instance.id for instance in self.ec2.view().instances if instance.state in ("pending", "running")}
        instances = {obj["metadata"]["name"]: obj["spec"].get("instance-id") for obj in self.objects()}
        self.names = [node_name(number) for number in range(count)]
        for number, name in enumerate(self.names):
            if name in instances and instances[name] not in alive:
                self._call("DELETE", f"/{name}", None)
            if instances.get(name) not in alive:
                self._add(number, TYPES[number % len(TYPES)], None, "node_subnets")

    def _add(
        self,
        number: int,
        instance_type: str,
        ipam: Mapping[str, int] | None,
        home: str,
        first_interface_index: int = 0,
    ) -> str:
        zones = sorted(self._world[home])
        subnet = self._world[home][zones[number % len(zones)]]
        instance = self.ec2.launch_instance(instance_type, subnet, groups=[self._world["node_group"]])
        name = node_name(number)
        eni = {
            "instance-type": instance_type,
            "vpc-id": instance.vpc_id,
            "availability-zone": instance.availability_zone,
            "node-subnet-id": subnet,
            "first-interface-index": first_interface_index,
            "subnet-tags": {"purpose": "pods"} if number % 4 == 0 else {},
        }
        spec = {"instance-id": instance.id, "eni": eni, "ipam": dict(ipam or {})}
        body = {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": name},
            "spec": spec,
        }
        self._call("POST", "", body)
        return name

    def objects(self) -> Iterator[dict[str, Any]]:
        """All CiliumNodes as the API server has them."""
        yield from self._call("GET", "", None)["items"]

    def get(self, name: str) -> dict[str, Any]:
        """One CiliumNode as the API server has it."""
        return self._call("GET", f"/{name}", None)

    def use(self, obj: Mapping[str, Any], count: int) -> None:
        """Let a node's agent report that pods use `count` of its addresses; those in use stay.

        Args:
            obj: the node's object, as just read.
            count: addresses in use, at most what the pool has.
        """
        pool = sorted(obj.get("spec", {}).get("ipam", {}).get("pool", {}))
        used = [address for address in obj.get("status", {}).get("ipam", {}).get("used", {}) if address in pool]
        free = [address for address in pool if address not in used]
        wanted = [*used, *free][:count]
        changes: dict[str, Any] = dict.fromkeys(set(used) - set(wanted))
        changes |= {address: {"owner": f"default/pod-{address}"} for address in wanted if address not in used}
        if changes:
            self.ec2.use_addresses(wanted)
            self.ec2.free_addresses(sorted(set(used) - set(wanted)))
            patch = {"status": {"ipam": {"used": changes}}}
            self._call("PATCH", f"/{obj['metadata']['name']}/status", patch)

    def _call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        node, what = path.strip("/").partition("/")[0], f"{method} ciliumnodes{path}"
        data = self._kube.call(method, NODES_PATH + path, what=what, node=node, body=body, content_type=content_type)
        answer: dict[str, Any] = msgspec.json.decode(data)
        return answer


def node_name(number: int) -> str:
    """The name of the node with that number."""
    return f"node-{number:04d}"


class Agents:
    """Pods that come and go on random nodes, in a thread if started.

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
            NodeGone: somebody has deleted it.
        """
        obj = self._fleet.get(self._random.choice(self._fleet.names))
        pool = len(obj.get("spec", {}).get("ipam", {}).get("pool", {}))
        used = len(obj.get("status", {}).get("ipam", {}).get("used", {}))
        self._fleet.use(obj, max(0, min(pool, used + self._random.randint(-3, 4))))
