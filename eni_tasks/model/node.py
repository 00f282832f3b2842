"""Kubernetes' side of the world: what a CiliumNode says, in both generations of the object."""

from __future__ import annotations

from eni_tasks.model.network import InstanceId, NodeName, SubnetId, Value, VpcId


class Node(Value, frozen=True):
    """The effective reading of one CiliumNode.

    Fields are named after the object's and already carry the rule of both generations: the later
    place wins if it is set, else the older place, else the default. `pre_allocate` is 0 where the
    object gives none (the default depends on the instance's limits). `network_card` is the default card of the
    instance's type, 0 while its limits are unknown. `multi_pool` says that the agent asks for addresses in
    `spec.ipam.pools.requested` instead of `status.ipam.used`, as agents of Cilium 1.20 do. `used` are the keys of
    `status.ipam.used`; `pool` maps address to interface id as the object shows it now, `shown_interfaces` are the
    keys of its `status.eni.enis`.
    """

    name: NodeName
    uid: str
    instance_id: InstanceId = InstanceId("")
    instance_type: str = ""
    vpc_id: VpcId = VpcId("")
    availability_zone: str = ""
    node_subnet_id: SubnetId = SubnetId("")
    min_allocate: int = 0
    pre_allocate: int = 0
    max_allocate: int = 0
    max_above_watermark: int = 0
    first_interface_index: int = 0
    security_groups: tuple[str, ...] = ()
    security_group_tags: dict[str, str] = {}
    subnet_ids: tuple[str, ...] = ()
    subnet_tags: dict[str, str] = {}
    exclude_interface_tags: dict[str, str] = {}
    delete_on_termination: bool = True
    use_primary_address: bool = False
    used: frozenset[str] = frozenset()
    pool: dict[str, str] = {}
    shown_interfaces: frozenset[str] = frozenset()
    network_card: int = 0
    multi_pool: bool = False
    deleting: bool = False  # metadata.deletionTimestamp is set
    ignored: bool = False  # annotation ipam.cilium.io/ignore: "true"


class Memory(Value, frozen=True):
    """What earlier runs learned about a node; belongs to one uid and instance."""

    uid: str = ""
    instance_id: InstanceId = InstanceId("")
    failures: int = 0  # failed runs in a row because of the node itself, drives the back-off
    failed_at: float = 0.0  # Redis seconds of the last of them
    retries: int = 0  # runs in a row that trouble of EC2, the account or the network ended
    interface_refusals: int = 0  # how often in a row EC2 refused a further interface
    interface_refused_at: float = 0.0  # Redis seconds of the last such refusal
    interface_refused_type: str = ""  # the instance type then: after a change of type the refusal proves nothing
    not_running_until: float = 0.0  # Redis seconds; the instance was stopped
    reason: str = ""  # of the last run's plan
    reasons: tuple[str, ...] = ()  # of the last run, for people
    last_action: str = ""
    trouble: str = ""  # shown in status.ipam.operator-status.error; "" when all is well


class Policy(Value, frozen=True):
    """What the operator of this system decided for all nodes (from the settings)."""

    cluster: str
    pre_allocate_default: int = 8
    facts_max_age_seconds: float = 300.0  # no mutation on facts that were last read longer ago
    interface_tags: dict[str, str] = {}
    subnet_ids_filter: tuple[str, ...] = ()
    subnet_tags_filter: dict[str, str] = {}
    security_group_ids_filter: tuple[str, ...] = ()
    security_group_tags_filter: dict[str, str] = {}
