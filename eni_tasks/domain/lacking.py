"""What a read lacks of what is known, and when it is believed.

EC2's reads may lag behind its answers, by more than the settle time. An address that pods use, or that EC2 has just
given, must not leave the pool because of it. So whatever was known stays known until two reads lack it that began
PROOF_SECONDS apart; each interface and address has its own clock, and a change of the instance starts all clocks again.
Likewise an address that was given back must not return to the pool because a late read still shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eni_tasks.domain.addresses import expanded, may_use, pool
from eni_tasks.domain.words import counted
from eni_tasks.model.plan import utc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node
    from eni_tasks.model.state import Facts

PROOF_SECONDS = 60.0


def lacked(before: Iterable[Interface], now: Iterable[Interface]) -> frozenset[str]:
    """Name what a read lacks: contents are compared, not counts.

    Args:
        before: what is known.
        now: what the read shows.

    Returns:
        Ids of interfaces that are missing or no longer attached; addresses and prefixes, those of such interfaces
        included. An address that the read shows on another interface has moved: it is not lacked.
    """
    shown = {interface.id: interface for interface in now}
    known = tuple(before)
    gone = {interface.id for interface in known if _is_gone(interface, shown.get(interface.id))}
    held = {name for interface in shown.values() if interface.id not in gone for name in _names(interface)}
    return frozenset(gone | ({name for interface in known for name in _names(interface)} - held))


def believed(
    known: Facts, now: Iterable[Interface], started_at: float
) -> tuple[tuple[Interface, ...], dict[str, float]]:
    """Join what a read shows with what it lacks but what is not proven to be lost.

    Args:
        known: the instance's accepted facts.
        now: what the read shows.
        started_at: when the read began, in Redis seconds.

    Returns:
        The interfaces; and what of them the read lacks, each with the start of the first read that lacked it.
    """
    shown = {interface.id: interface for interface in now}
    since = {name: known.lacking.get(name, started_at) for name in lacked(known.interfaces, shown.values())}
    kept = {name: at for name, at in since.items() if started_at - at < PROOF_SECONDS}
    joined = [_joined(interface, shown.pop(interface.id, None), kept) for interface in known.interfaces]
    interfaces = (*(interface for interface in joined if interface is not None), *shown.values())
    present = {name for interface in interfaces for name in (interface.id, *_names(interface))}
    return interfaces, {name: at for name, at in sorted(kept.items()) if name in present}


def without_released(known: Facts, now: Iterable[Interface], started_at: float) -> tuple[Interface, ...]:
    """Leave out of a read what was given back less than PROOF_SECONDS before it began.

    What EC2 has assigned again since is known from its answer, and stays.

    Args:
        known: the instance's facts.
        now: what the read shows.
        started_at: when the read began, in Redis seconds.
    """
    given_again = {name for interface in known.interfaces for name in _names(interface)}
    late = {name for name, at in known.released.items() if started_at - at < PROOF_SECONDS} - given_again
    return tuple(
        msgspec.structs.replace(
            interface,
            addresses=tuple(name for name in interface.addresses if name not in late),
            prefixes=tuple(name for name in interface.prefixes if name not in late),
        )
        if not late.isdisjoint(_names(interface))
        else interface
        for interface in now
    )


def explain(facts: Facts, node: Node) -> str:
    """Say how many used addresses reads lack, and since when; "" if none.

    Args:
        facts: what is known of the node's instance.
        node: for its used addresses.
    """
    since: dict[str, float] = {}
    for name, at in facts.lacking.items():
        if ":" in name:
            continue  # which addresses of an IPv6 prefix pods use the object does not say
        since |= dict.fromkeys(may_use(node, expanded(name)), at)
    if not since:
        return ""
    return (
        f"EC2's reads have lacked {counted(len(since), 'used address')} of {facts.instance_id} "
        f"since {utc(min(since.values()))}: "
        f"they stay in the pool until reads have lacked them for {PROOF_SECONDS:.0f} s."
    )


def missing_addresses(node: Node, interfaces: Iterable[Interface]) -> frozenset[str]:
    """Name the addresses that a node's object shows in its pool and that its interfaces don't have.

    Args:
        node: the node as its object reads.
        interfaces: what the instance has.
    """
    return frozenset(node.pool.keys() - pool(interfaces, node).keys())


def lacks_used(node: Node, interfaces: Iterable[Interface]) -> bool:
    """Say whether a read lacks addresses that pods may use, as far as the object alone can tell.

    An object that shows none of the instance's interfaces is about another instance: the node was replaced, and no
    pod uses the old addresses any more.

    Args:
        node: the node as its object reads.
        interfaces: what the read shows.
    """
    shown = tuple(interfaces)
    same_instance = any(interface.id in node.shown_interfaces for interface in shown)
    return same_instance and bool(may_use(node, missing_addresses(node, shown)))


def _is_gone(before: Interface, now: Interface | None) -> bool:
    return now is None or (before.attachment_status == "attached" != now.attachment_status)


def _names(interface: Interface) -> tuple[str, ...]:
    return (*interface.addresses, *interface.prefixes, *interface.ipv6_prefixes)


def _joined(before: Interface, now: Interface | None, kept: dict[str, float]) -> Interface | None:
    """One known interface after a read; None if it is proven to be lost."""
    if before.id in kept:
        return before
    if now is None or _is_gone(before, now):
        return now
    return msgspec.structs.replace(
        now,
        addresses=(*now.addresses, *(name for name in before.addresses if name in kept)),
        prefixes=(*now.prefixes, *(name for name in before.prefixes if name in kept)),
        ipv6_prefixes=(*now.ipv6_prefixes, *(name for name in before.ipv6_prefixes if name in kept)),
    )
