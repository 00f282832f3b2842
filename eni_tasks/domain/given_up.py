"""Blocks that an agent of Cilium 1.20 has given up: since when, and which of them may be released.

Such an agent says that it no longer needs a block by leaving it out of its list, and takes it back by listing it again.
It hands addresses of a block out that it takes back before its list says so, so silence for the whole delay is
necessary but is no proof: right before the call the object and the node's addresses are read once more.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING

from eni_tasks.domain.pool_demand import covered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# An agent's list may be this much older than what the agent does: it writes at most every 15 s, and after a conflict
# only with its next timer.
LEAST_DELAY_SECONDS = 75.0


def marks(
    since: Mapping[str, float],
    *,
    before: Collection[str] | None,
    listed: Collection[str],
    attached: Collection[str],
    now: float,
) -> dict[str, float]:
    """Say since when which blocks are given up, after a look at the object and at EC2's answer.

    Args:
        since: the marks so far: block to time, in seconds.
        before: what the agent listed at the look before; None at the first look, when what was given up earlier is
            found by being attached and not listed.
        listed: what it lists now.
        attached: the blocks that could be released (see `blocks.releasable`).
        now: the time of the look, in seconds.

    Returns:
        The marks: a block that is listed again, or is not attached any more, has none. One that was never listed was
        not given up: the agent has not seen it yet.
    """
    new = attached if before is None else set(before) & set(attached)
    return {
        block: since.get(block, now) for block in attached if block not in listed and (block in since or block in new)
    }


def due(since: Mapping[str, float], *, now: float, delay_seconds: float) -> list[str]:
    """List the blocks that were given up for the whole delay, the longest first, then by address.

    Args:
        since: from `marks`.
        now: the present, in seconds.
        delay_seconds: the delay that is set; no less than LEAST_DELAY_SECONDS counts.
    """
    delay = max(delay_seconds, LEAST_DELAY_SECONDS)
    return sorted(
        (block for block, at in since.items() if now - at >= delay), key=lambda block: (since[block], _order(block))
    )


def within_excess(blocks: Iterable[str], excess: int) -> list[str]:
    """Take blocks, in their order, while all their addresses are in excess.

    The agent knows neither min-allocate nor max-above-watermark: what it gives up may be wanted by these.

    Args:
        blocks: from `due`.
        excess: addresses that the node holds beyond its watermarks.
    """
    taken: list[str] = []
    for block in blocks:
        size = ip_network(block).num_addresses
        if size <= excess:
            taken.append(block)
            excess -= size
    return taken


def confirmed(blocks: Iterable[str], *, listed: Collection[str], in_use: Iterable[str]) -> tuple[list[str], list[str]]:
    """Decide with the last look before the call.

    Args:
        blocks: what is to be released.
        listed: what the agent lists now.
        in_use: the node's addresses: of its pods, and its own.

    Returns:
        The blocks that may be released; and those that are in use although they are not listed: their delay starts
        again.
    """
    used = [address for address in in_use if ":" not in address]
    unlisted = [block for block in blocks if block not in listed]
    taken_back = [block for block in unlisted if covered(used, [block])]
    return [block for block in unlisted if block not in taken_back], taken_back


def _order(block: str) -> tuple[int, int]:
    network = ip_network(block)
    return (0 if isinstance(network, IPv4Network) else 1), int(network.network_address)
