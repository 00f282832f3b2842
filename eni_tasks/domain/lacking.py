"""What a read lacks of what is known, and when it is believed.

EC2's reads may lag behind its answers, by more than the settle time. An address that pods use, or that EC2 has just
given, must not leave the pool because of it. So whatever was known stays known until two reads lack it that began
PROOF_SECONDS apart; each interface and address has its own clock, and a change of the instance starts all clocks again.
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING

import msgspec

from eni_tasks.domain.blocked import utc
from eni_tasks.domain.words import counted

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


def explain(facts: Facts, node: Node) -> str:
    """Say how many used addresses reads lack, and since when; "" if none.

    Args:
        facts: what is known of the node's instance.
        node: for its used addresses.
    """
    since: dict[str, float] = {}
    for name, at in facts.lacking.items():
        expanded = (str(address) for address in IPv4Network(name)) if "/" in name else (name,)
        since |= {address: at for address in expanded if address in node.used}
    if not since:
        return ""
    return (
        f"EC2's reads have lacked {counted(len(since), 'used address')} of {facts.instance_id} "
        f"since {utc(min(since.values()))}: "
        f"they stay in the pool until reads have lacked them for {PROOF_SECONDS:.0f} s."
    )


def _is_gone(before: Interface, now: Interface | None) -> bool:
    return now is None or (before.attachment_status == "attached" != now.attachment_status)


def _names(interface: Interface) -> tuple[str, ...]:
    return (*interface.addresses, *interface.prefixes)


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
    )
