"""Which interfaces were left behind, and which of them may be deleted now: the rule, and nothing else.

An interface that is being created looks exactly like one that was left behind: unattached, with our tags. Three
things tell them apart. An interface that a journal names is being created. What remains must have been seen unattached
by an earlier pass. And it must have been so for the grace period, since journals are lost with Redis' data, and another
operator with our tags keeps none.

EC2 tells no creation time. The time for which passes have seen an interface unattached is never more than its age, so
it stands in for the age: no tag and no second clock are needed, and when Redis loses its data the wait starts again.

Listing, noting and deleting are the service's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eni_tasks.model.network import InstanceId, Interface, InterfaceId, NodeName, Value, matches, ownership

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

# The settings' default, and Cilium's: clusters without a name of their own would collect each other's interfaces.
UNNAMED = frozenset({"", "default"})

# What `creation` writes into a new interface's description, as Cilium's operator does.
_CREATED_FOR = re.compile(r"Cilium-CNI \((i-[0-9a-z]+)\)")


class Rule(Value, frozen=True):
    """What makes an interface an orphan, and how many may be deleted in one pass.

    `vpc_ids` are the VPCs of the nodes. `removed_wait_seconds` stands in for the grace where an
    interface was created for the instance of a removed node: it will not be attached any more, and after that time
    no call can be running. Both waits are more than 0, so that an interface waits when it is seen first.
    """

    cluster: str
    grace_seconds: float
    removed_wait_seconds: float
    most_count: int
    vpc_ids: frozenset[str] = frozenset()


class Verdict(Value, frozen=True):
    """What a pass may delete, in this order, and for how many seconds the others have to wait."""

    delete: tuple[Interface, ...]
    waiting: dict[InterfaceId, float]


def refusal(rule: Rule) -> str:
    """Say why nothing can be called ours, "" if something can."""
    if rule.cluster in UNNAMED:
        return (
            f'the cluster is called "{rule.cluster}", the default: what carries that name may be of another cluster. '
            "Give it a name of its own (ENI_TASKS_CLUSTER)"
        )
    return "" if rule.vpc_ids else "no VPC of a node is known yet; they are read with the next resync"


def created_for(interface: Interface) -> InstanceId:
    """Tell for which instance an interface was made; "" where its description doesn't say.

    It only decides how long an interface of ours waits: ownership is a matter of the tags alone.
    """
    found = _CREATED_FOR.fullmatch(interface.description)
    return InstanceId(found[1] if found else "")


def ours(interfaces: Iterable[Interface], rule: Rule) -> list[Interface]:
    """Pick the unattached interfaces of our cluster in our VPCs, whatever EC2's filters let through."""
    if refusal(rule):
        return []
    tags = ownership(rule.cluster)
    return [
        interface
        for interface in interfaces
        if interface.status == "available"
        and not interface.attachment_id
        and matches(tags, interface.tags)
        and interface.vpc_id in rule.vpc_ids
    ]


def being_created(interfaces: Iterable[Interface], journals: Mapping[NodeName, bytes]) -> dict[InterfaceId, NodeName]:
    """Find the interfaces that a journal speaks of.

    A journal that says "created" names its interface. One that only says what is wanted names the
    instance, and the interface may exist already. Both are looked for in the entry's text, so that an
    entry of a neighbouring version is respected as well.

    Args:
        interfaces: unattached ones of ours.
        journals: the entries of the interface creations under way, by node.

    Returns:
        The node of the journal, by interface.
    """
    found: dict[InterfaceId, NodeName] = {}
    for interface in interfaces:
        words = [word.encode() for word in (interface.id, created_for(interface)) if word]
        for node, entry in journals.items():
            if any(word in entry for word in words):
                found[interface.id] = node
    return found


def judge(
    unclaimed: Sequence[Interface],
    seen_seconds: Mapping[InterfaceId, float],
    removed: Collection[InstanceId],
    rule: Rule,
) -> Verdict:
    """Decide about interfaces of ours that no journal speaks of.

    Args:
        unclaimed: those interfaces.
        seen_seconds: for how long each has been seen so, 0 if never before.
        removed: instances whose node was removed lately.
        rule: the waits and the limit of a pass.

    Returns:
        The verdict. Those seen longest go first; what the limit cuts off waits for the next pass.
    """
    waiting: dict[InterfaceId, float] = {}
    for interface in unclaimed:
        wait = rule.removed_wait_seconds if created_for(interface) in removed else rule.grace_seconds
        waiting[interface.id] = max(0.0, wait - seen_seconds.get(interface.id, 0.0))
    ripe = [interface for interface in unclaimed if not waiting[interface.id]]
    ripe.sort(key=lambda interface: (-seen_seconds[interface.id], interface.id))
    delete = tuple(ripe[: rule.most_count])
    for interface in delete:
        del waiting[interface.id]
    return Verdict(delete=delete, waiting=waiting)
