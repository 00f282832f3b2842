"""Kubernetes' side of the world: what a CiliumNode says, in both generations of the object."""

from __future__ import annotations

import re
from enum import StrEnum

from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, InterfaceId, NodeName, SubnetId, Value, VpcId

# An RFC 1123 subdomain, as Kubernetes demands of an object's name.
NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def node_name(node: object) -> NodeName:
    """Check a name that a person or a message gives.

    Raises:
        InvalidInput: no node can have that name.
    """
    if not isinstance(node, str) or not NODE_NAME.fullmatch(node):
        raise InvalidInput(f"{node!r} is not the name of a node (such as ip-10-0-1-2.ec2.internal)")
    return NodeName(node)


class PoolDemand(Value, frozen=True):
    """What an agent of Cilium 1.20 or later asks for and holds, in its pool "default".

    `ipv4` is in use + waited for + `pre_allocate`, as the agent knew that when it asked; `ipv6` is the same for IPv6,
    and either is 0 if the agent asks for none of that family. `listed` are the blocks (such as "10.0.1.16/28" or
    "10.0.0.9/32") that it hands addresses out from. `changing` says that the object's pre-allocate has changed since
    the agent asked.
    """

    ipv4: int = 0
    ipv6: int = 0
    pre_allocate: int = 0
    listed: frozenset[str] = frozenset()
    changing: bool = False


class Mark(StrEnum):
    """States of an address in `status.ipam.release-ips`, by which agents since Cilium 1.12 agree to lose it.

    The agent hands out no address that is marked, ready or released.
    """

    MARKED = "marked-for-release"  # ours: the agent is asked
    READY = "ready-for-release"  # the agent's: no pod has the address, and none will get it
    KEPT = "do-not-release"  # the agent's: in use, or not in its pool
    RELEASED = "released"  # ours: EC2 took the address back; the agent deletes the entry


class Node(Value, frozen=True):
    """The effective reading of one CiliumNode.

    Fields are named after the object's and already carry the rule of both generations: the later
    place wins if it is set, else the older place, else the default. `pre_allocate` is 0 where the
    object gives none (the default depends on the instance's limits). `network_card` is the default card of the
    instance's type, 0 while its limits are unknown. `demand` is there if the agent asks for addresses in
    `spec.ipam.pools` instead of `status.ipam.used`, as agents of Cilium 1.20 do; `old_fields` says that the
    instance id stands in `spec.eni` alone, as agents of Cilium 1.6 write it. `used` are the keys of
    `status.ipam.used`; `pool` maps address to interface id as the object shows it now, `shown_interfaces` are the
    keys of its `status.eni.enis`, `release_ips` maps address to state (`Mark`, or a word of another's).
    `static_ip_tags` ask for an Elastic IP that carries them all.
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
    disable_prefix_delegation: bool = False
    static_ip_tags: dict[str, str] = {}
    used: frozenset[str] = frozenset()
    pool: dict[str, str] = {}
    shown_interfaces: frozenset[str] = frozenset()
    release_ips: dict[str, str] = {}
    network_card: int = 0
    demand: PoolDemand | None = None
    old_fields: bool = False
    deleting: bool = False  # metadata.deletionTimestamp is set
    ignored: bool = False  # annotation ipam.cilium.io/ignore: "true"


class ReleaseMemory(Value, frozen=True):
    """How far the release of excess addresses has come. Names are addresses and prefixes, times Redis seconds.

    It is valid for one `contract` (how the agent is asked, see `domain.release.Contract`) and one state `generation`
    only. `since` is when a name became a candidate for release, without interruption from then on. `asked` are those
    that the agent is asked to give up, and since when. For an agent of Cilium 1.20 the names are blocks, and `listed`
    are those of the instance's blocks that it listed at the last look, when its object gave `pre_allocate`.
    """

    contract: str = ""
    generation: str = ""
    since: dict[str, float] = {}
    asked: dict[str, float] = {}
    listed: tuple[str, ...] = ()
    pre_allocate: int = 0


class Setback(Value, frozen=True):
    """A step beside the pool that could not be taken, and is not tried again before `until` (Redis seconds).

    `count` is how often in a row, `why` a sentence for people. `about` is what the step was about: for another thing it
    is tried at once.
    """

    count: int = 0
    until: float = 0.0
    why: str = ""
    about: str = ""


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
    ipv6: Setback = Setback()  # the last try to get an IPv6 prefix
    static_address: Setback = Setback()  # the last try to associate an Elastic IP
    fell_back: frozenset[InterfaceId] = frozenset()  # got single addresses only because there was no free /28 prefix
    reason: str = ""  # of the last run's plan
    reasons: tuple[str, ...] = ()  # of the last run, for people
    last_action: str = ""
    trouble: str = ""  # shown in status.ipam.operator-status.error; "" when all is well
    release: ReleaseMemory = ReleaseMemory()


class Policy(Value, frozen=True):
    """What the operator of this system decided for all nodes (from the settings)."""

    cluster: str
    pre_allocate_default: int = 8
    facts_max_age_seconds: float = 300.0  # no mutation on facts that were last read longer ago
    release_excess: bool = False
    release_16: bool = False  # also of nodes whose agents can't be asked
    release_delay_seconds: float = 180.0  # an address must have been in excess for this long
    ipv6: bool = False
    static_addresses: bool = False
    prefix_delegation: bool = False
    interface_tags: dict[str, str] = {}
    subnet_ids_filter: tuple[str, ...] = ()
    subnet_tags_filter: dict[str, str] = {}
    security_group_ids_filter: tuple[str, ...] = ()
    security_group_tags_filter: dict[str, str] = {}
