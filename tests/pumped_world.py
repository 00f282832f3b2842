"""The servers of one test, and how it acts on them from outside and looks at what became of it.

Redis, the EC2 API and the Kubernetes API are real servers on loopback; the services are those of
production, except that messages are queued instead of sent. `pumped` moves it all.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from eni_tasks.bootstrap import Services
from eni_tasks.model.network import NodeName
from eni_tasks.services.status import NodeStatus
from eni_tasks.settings import Settings
from eni_tasks.state.connection import connect
from eni_tasks.state.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from eni_tasks.model.work import Pass, WorkKind
    from eni_tasks.sandbox.ec2.records import Instance, Interface
    from eni_tasks.sandbox.ec2.server import Ec2Server
    from eni_tasks.sandbox.ec2.world import DefaultWorld
    from eni_tasks.sandbox.kube.server import KubeServer

SETTLE_SECONDS = 0.05
TIMEOUT_SECONDS = 2.0
LEASE_SECONDS = 7.0
MUTATIONS = ("Create", "Attach", "Modify", "Assign", "Unassign", "Detach", "Delete", "Associate")


class WaitingMessages:
    """Messages that wait in this process, and the number of all that were sent."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[WorkKind, NodeName | Pass]] = deque()
        self.sent: Counter[WorkKind] = Counter()

    def send(self, kind: WorkKind, name: NodeName | Pass) -> None:
        self.sent[kind] += 1
        self.waiting.append((kind, name))


class World:
    """Everything that one test acts on."""

    def __init__(self, redis_url: str, ec2: Ec2Server, built: DefaultWorld, kube: KubeServer, **settings: Any) -> None:
        self.cluster = f"t-{uuid.uuid4().hex}"
        self.ec2, self.built, self.kube = ec2.control, built, kube.api
        self.messages = WaitingMessages()
        self.redis = connect(redis_url, connections=8)
        self._settings = {
            "cluster": self.cluster,
            "redis_url": redis_url,
            "settle_seconds": SETTLE_SECONDS,
            "ec2_timeout_seconds": TIMEOUT_SECONDS,
            "lease_seconds": LEASE_SECONDS,
            "kube_timeout_seconds": 5,
        } | settings
        self._keys = Keys(self.cluster)
        self._opened: list[Services] = []
        self._ahead_seconds = 0.0
        built.world.clock = lambda: time.time() + self._ahead_seconds
        self.services = self.process()
        # The state generation began long ago.
        self.services.state.coordination.begin_generation()
        self.redis.hset(self._keys.generation_times, "began_at", 0)

    def process(self, *, interactive: bool = False) -> Services:
        """The services of one more process."""
        services = Services(Settings(**self._settings), self.messages, interactive=interactive)
        self._opened.append(services)
        return services

    def empty_redis(self) -> None:
        """Lose all that Redis held, messages included; a watcher that was not there before begins again."""
        self.redis.delete(*self._all_keys())
        self.messages.waiting.clear()
        self.services.state.coordination.begin_generation()

    def close(self) -> None:
        """Close what the test opened."""
        for services in self._opened:
            services.state.connection.client.close()
        self.redis.close()

    # -- the outside ---------------------------------------------------------------------------
    def launch(self, instance_type: str = "m5.large", **options: Any) -> Instance:
        """Launch an instance in zone a."""
        subnet = options.pop("subnet", self.built.node_subnets["a"])
        options.setdefault("groups", [self.built.node_group])
        return self.ec2.launch_instance(instance_type, subnet, **options)

    def add_node(  # noqa: PLR0913 - the parts of an object
        self,
        name: str = "node",
        instance_type: str = "m5.large",
        *,
        instance: Instance | None = None,
        eni: dict[str, Any] | None = None,
        ipam: dict[str, Any] | None = None,
        top: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        **options: Any,
    ) -> Instance:
        """Launch an instance (unless given) and create its object, as an agent does."""
        instance = instance or self.launch(instance_type, **options)
        spec = {
            "instance-id": instance.id,
            "eni": {
                "instance-type": instance_type,
                "vpc-id": instance.vpc_id,
                "availability-zone": instance.availability_zone,
                "node-subnet-id": instance.subnet_id,
                "first-interface-index": 0,
            }
            | (eni or {}),
            "ipam": ipam or {},
        } | (top or {})
        head = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode"}
        self.kube.store.create({**head, "metadata": {"name": name, **(metadata or {})}, "spec": spec})
        return instance

    def change(self, name: str, change: Callable[[dict[str, Any]], Any], *, status: bool = False) -> None:
        """Change an object as people and agents do."""

        def changed(body: dict[str, Any]) -> dict[str, Any]:
            change(body)
            return body

        self.kube.store.patch(name, changed, status=status)

    def use(self, count: int, name: str = "node", *, phantom: bool = False) -> list[str]:
        """Let the agent report `count` addresses in use: of the pool, or unknown ones."""
        pool = [f"192.0.2.{number}" for number in range(1, 255)] if phantom else sorted(self.pool(name))
        used = pool[:count]
        assert len(used) == count, f"{name} has only {len(pool)} addresses"

        def report(body: dict[str, Any]) -> None:
            entries = {address: {"owner": f"default/pod-{address}"} for address in used}
            body.setdefault("status", {}).setdefault("ipam", {})["used"] = entries

        self.change(name, report, status=True)
        return used

    def object(self, name: str = "node") -> dict[str, Any]:
        """The object as the API server has it."""
        return self.kube.store.get(name).body

    def pool(self, name: str = "node") -> dict[str, str]:
        """The pool that the object shows: address → interface."""
        entries = self.object(name)["spec"].get("ipam", {}).get("pool", {})
        return {address: entry["resource"] for address, entry in entries.items()}

    def interfaces(self, instance: Instance) -> list[Interface]:
        """The interfaces of an instance as they truly are, by device."""
        found = [each for each in self.ec2.view().interfaces if each.instance_id == instance.id]
        return sorted(found, key=lambda each: each.attachment.device_index if each.attachment else 0)

    # -- looking at it -------------------------------------------------------------------------
    def _all_keys(self) -> Iterator[bytes]:
        yield from self.redis.scan_iter(f"{{eni:{self.cluster}}}*", count=1000)

    def keys_of(self, name: str) -> list[str]:
        """Keys that belong to a node's work, and shared ones that have an entry for it.

        For an hour the collector of orphans keeps the ids of instances whose node is gone.
        """
        found = []
        for key in set(self._all_keys()) - {self._keys.removed.encode()}:
            kind, named = self.redis.type(key), key.decode()
            inside = (kind == b"hash" and self.redis.hexists(key, name)) or (
                kind == b"zset" and self.redis.zscore(key, name) is not None
            )
            if inside or named.endswith(f":{name}"):
                found.append(named)
        return found

    def reserved(self) -> dict[str, int]:
        """Addresses that the ledger holds back."""
        return {name.decode(): int(count) for name, count in self.redis.hgetall(self._keys.ledger).items()}

    def memory(self, name: str = "node") -> dict[str, Any]:
        """What earlier runs remembered of a node."""
        kept: dict[str, Any] = json.loads(self.redis.hget(self._keys.memory, name) or "{}")
        return kept

    def bucket(self, action: str) -> dict[str, float]:
        """The shared token bucket of an EC2 action."""
        return {name.decode(): float(value) for name, value in self.redis.hgetall(self._keys.bucket(action)).items()}

    def status(self, name: str = "node") -> NodeStatus:
        """The node as people see it."""
        return self.services.status.node(NodeName(name)).status

    def fresh(self) -> None:
        """Reset all counts."""
        self.ec2.reset_calls()
        self.kube.requests.reset()
        self.messages.sent.clear()

    def mutations(self) -> dict[str, int]:
        """EC2's mutations since `fresh`, refused ones included, by the first word of the action."""
        counts = {action: sum(codes.values()) for action, codes in self.ec2.counts().items()}
        words = {word: sum(n for action, n in counts.items() if action.startswith(word)) for word in MUTATIONS}
        return {word: count for word, count in words.items() if count}

    def reads(self) -> dict[str, int]:
        """EC2's reads since `fresh`."""
        counts = {action: sum(codes.values()) for action, codes in self.ec2.counts().items()}
        return {action: count for action, count in counts.items() if action.startswith("Describe")}

    def writes(self) -> dict[str, int]:
        """Writes at the API server since `fresh`, refused ones included."""
        names = {"patch/status": "status", "patch": "spec"}
        return {names[verb]: count for verb, count in self.kube.requests.counts().items() if verb in names}

    def clean(self) -> bool:
        """No rule of EC2 is broken, and no interface of ours is left over."""
        assert self.ec2.violations() == []
        assert self.ec2.leftovers({"io.cilium/cluster-name": self.cluster}) == []
        return True
