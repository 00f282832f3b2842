"""What is known of one node at one moment, and what a step of a run leaves behind."""

from __future__ import annotations

from collections.abc import Mapping

from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import Infrastructure, InstanceId, Interface, Limits, NodeName, SubnetId, Value
from eni_tasks.model.node import Memory, Node

EventFields = Mapping[str, str | int | float]


class Facts(Value, frozen=True):
    """What is known of one instance's interfaces. Times are Redis seconds.

    `mutated_at` is the time by which the last mutation has certainly ended. `version` changes with every
    write. `unconfirmed_since` is set while a read missed something that an earlier one had.
    `mutation_pending` is set from the permission for a mutation until its outcome is recorded. `outdated` says
    that the last read began before the present state generation: later writes may be lost. While any of them is
    set, the interfaces count as unknown.

    `lacking` are interfaces and addresses that are still among `interfaces` although reads lack them, each with the
    start of the first of these reads. `released` are addresses and prefixes that were given back lately, each with
    the time: a read that still shows them is late. `problem` says why the last read could not be used.
    """

    instance_id: InstanceId
    interfaces: tuple[Interface, ...]
    described_at: float
    mutated_at: float = 0.0
    version: int = 0
    unconfirmed_since: float = 0.0
    mutation_pending: bool = False
    outdated: bool = False
    lacking: dict[str, float] = {}
    released: dict[str, float] = {}
    problem: str = ""

    @property
    def known(self) -> bool:
        """Whether decisions may be based on the interfaces."""
        return not (self.unconfirmed_since or self.mutation_pending or self.outdated)


class NodeState(Value, frozen=True):
    """Everything that a decision about one node may look at, read in one step.

    `obj` is the stored CiliumNode and `node` its effective reading. `facts` and `limits` are those of its
    instance and type, None while unknown. `limits_requested` tells a type that EC2 did not know from one that
    was never asked for. `reserved` are addresses held against each subnet's free count, `cooling_down` the
    subnets that reported that they are full, `no_prefix` those that reported that they have no free /28 prefix.
    `memory` is what applies to this uid and instance, `stored_memory` the entry as Redis holds it. `journal` is the
    entry of an interface creation under way. `publish_failure` is why the object could not be written lately ("" if
    it could). `generation` is the state generation, `restores` how often the API server's objects went back in time.
    `read_failure` is why the last read of EC2 failed ("" if it succeeded). `instance_owner` is the node that the
    instance belongs to: the one that has named it for longest. `pending_pods` are the node's pods that wait, those on
    the host's network not counted; 0 while nobody looks. `now` is Redis' time in seconds.
    """

    node: Node
    now: float = 0.0
    obj: CiliumNode = CiliumNode()
    facts: Facts | None = None
    limits: Limits | None = None
    limits_requested: bool = True
    infrastructure: Infrastructure = Infrastructure()
    reserved: dict[str, int] = {}
    cooling_down: frozenset[str] = frozenset()
    no_prefix: frozenset[str] = frozenset()
    memory: Memory = Memory()
    stored_memory: Memory = Memory()
    journal: bytes | None = None
    generation: str = ""
    restores: str = ""
    read_failure: str = ""
    publish_failure: str = ""
    instance_owner: NodeName = NodeName("")
    pending_pods: int = 0

    @property
    def release_generation(self) -> str:
        """What the memory of releases belongs to: answers in restored objects are of an earlier time."""
        return f"{self.generation}.{self.restores}" if self.restores else self.generation

    @property
    def owns_instance(self) -> bool:
        """Whether no other node has named the same instance for longer."""
        return self.instance_owner in ("", self.node.name)

    @property
    def has_something_to_show(self) -> bool:
        """Whether enough is known to write the object: of a node whose instance is another's the reason is enough."""
        return self.interfaces is not None or not self.owns_instance

    @property
    def interfaces(self) -> tuple[Interface, ...] | None:
        """The instance's interfaces; None while unknown, which is not the same as none."""
        return self.facts.interfaces if self.facts is not None and self.facts.known else None


class ReadResult(Value, frozen=True):
    """What a describe call showed of one instance, compared with its facts at `version` (0: there were none).

    `unconfirmed` says that the read lacks something, and that nothing can be decided meanwhile. `lacking` is as in
    `Facts`; what it names is still among `interfaces`. `served` says that the object shows addresses: the node was
    served before, perhaps by a process of which this Redis has no record.
    """

    instance_id: InstanceId
    interfaces: tuple[Interface, ...]
    version: int
    unconfirmed: bool = False
    lacking: dict[str, float] = {}
    served: bool = False


class Reservation(Value, frozen=True):
    """Addresses of a subnet that the ledger holds for one mutation, under an id of the caller's."""

    subnet_id: SubnetId
    id: str
    count: int


class Outcome(Value, frozen=True):
    """What a step leaves behind. A part that is absent stays as it was.

    Facts of `instance_id` (if given): `interfaces` as EC2's answer has left them, or None if EC2 refused.
    With `unconfirmed` the answer contradicts the facts, which count as unknown until the next read. `released`
    replaces what was given back lately.
    `journal`: the step of the interface creation; b"" deletes the entry. `reservation` (as it was acquired):
    `taken` addresses of it were really taken. `event` is appended to the stream of events.
    """

    instance_id: InstanceId = InstanceId("")
    interfaces: tuple[Interface, ...] | None = None
    unconfirmed: bool = False
    released: dict[str, float] | None = None
    journal: bytes | None = None
    reservation: Reservation | None = None
    taken: int = 0
    event: tuple[str, EventFields] | None = None
