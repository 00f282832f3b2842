"""Which interfaces are left over, and which of them may be deleted now: the rule, and nothing else.

An interface in the making looks exactly like one left behind: unattached, with our tags. Three things
tell them apart. Whatever a journal speaks of is in the making. What is left must have been seen
unattached by an earlier pass. And it must have been so for the grace, since journals are lost when
Redis is emptied, and another operator with our tags keeps none.

EC2 tells no creation time. How long we have seen an interface unattached is never more than its age, so
that time stands in for it: no tag, no second clock, and an emptied Redis begins anew.

Listing, remembering and deleting are the service's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eni_tasks.domain.tags import matches, ownership
from eni_tasks.model.network import InstanceId, Interface, InterfaceId, NodeName, Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

# The settings' default, and Cilium's: clusters that nobody named would collect each other's interfaces.
UNNAMED = frozenset({"", "default"})

# What `creation` writes into a new interface's description, as Cilium's operator does.
_CREATED_FOR = re.compile(r"Cilium-CNI \((i-[0-9a-z]+)\)")


class Rule(Value, frozen=True):
    """What makes an interface an orphan, and how many may be deleted in one pass.

    `vpc_ids` are the VPCs of the known nodes. `removed_wait_seconds` stands in for the grace where an
    interface was made for the instance of a removed node: nobody will attach it any more, and after
    that time no call can be under way. Both waits are more than 0, so that whatever is seen for
    the first time waits.
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
            f'the cluster is called "{rule.cluster}", as every cluster is that nobody named: what carries that name '
            "may be another cluster's. Give it a name of its own (ENI_TASKS_CLUSTER)"
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
        journals: the entries of the sagas in flight, by node.

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
