"""The shared state of a cluster of its own, on a server of the tests, and a way to let time pass without waiting."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from eni_tasks.domain.cilium_node import decode_node
from eni_tasks.model.cilium_node import CiliumNode, Metadata
from eni_tasks.model.network import InstanceId, Interface, InterfaceId, NodeName, SubnetId, VpcId
from eni_tasks.model.work import Claim, WorkKind
from eni_tasks.state import State as SharedState
from eni_tasks.state.connection import advance_clock, connect
from eni_tasks.state.runs import NewObjects

if TYPE_CHECKING:
    from collections.abc import Mapping


LEASE, OVERDUE, SETTLE = 30, 20, 5
NODE, INSTANCE, SUBNET = NodeName("n"), InstanceId("i-1"), SubnetId("subnet-1")
KIND = WorkKind.MAINTAIN


class State(SharedState):
    """The state with short cuts for tests."""

    def __init__(self, url: str, buckets: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.url = url
        self.cluster = uuid.uuid4().hex
        self.client = connect(url, connections=40)
        super().__init__(
            self.client,
            self.cluster,
            lease_seconds=LEASE,
            overdue_seconds=OVERDUE,
            settle_seconds=SETTLE,
            buckets={"A": (10, 5)} if buckets is None else buckets,
        )
        self.keys = self.connection.keys

    def store_nodes(self, *names: str) -> None:
        """Store an object for each name: work on a node that is not stored ends with its run."""
        metadata = (Metadata(name=name, uid=f"uid-{name}", resource_version="1") for name in names)
        self.runs.store(NewObjects(objects=[CiliumNode(metadata=each) for each in metadata]))

    def later(self, seconds: float) -> None:
        """Let time pass."""
        advance_clock(seconds)

    def begin_old_generation(self) -> None:
        """The state generation began a day ago."""
        self.coordination.begin_generation()
        self.later(86_400)

    def claim(self, name: str = NODE, kind: WorkKind = KIND) -> Claim:
        claim = self.queue.claim(kind, NodeName(name))
        assert claim is not None
        return claim

    def store(self, *objects: CiliumNode) -> None:
        """Store objects from which nothing follows."""
        self.runs.store(NewObjects(objects=list(objects)))

    def exchanges(self) -> list[int]:
        """A list that grows by one entry with each round trip from now on."""
        exchanges: list[int] = []
        connection = self.client.connection_pool.get_connection()
        send = connection.send_packed_command
        connection.send_packed_command = lambda *args, **options: (exchanges.append(1), send(*args, **options))[1]
        self.client.connection_pool.release(connection)
        return exchanges

    def left_over(self) -> list[str]:
        """Keys of work that is not done."""
        prefix = self.keys.work(KIND, "").split("work:")[0]
        return [
            key.decode()
            for part in ("work", "pending")
            for key in self.client.scan_iter(f"{prefix}{part}:*", count=1000)
        ]


def node(version: str = "1", uid: str = "uid-1", name: str = NODE, spec: Any = None) -> CiliumNode:
    """A CiliumNode as it comes from the API server; `spec` is null unless given."""
    metadata = {"name": name, "uid": uid, "resourceVersion": version}
    return decode_node(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def interface(name: str = "eni-1", *addresses: str) -> Interface:
    return Interface(
        id=InterfaceId(name),
        subnet_id=SUBNET,
        vpc_id=VpcId("vpc-1"),
        primary_address="10.0.0.1",
        addresses=addresses,
    )
