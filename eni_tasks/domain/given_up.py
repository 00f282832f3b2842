"""Blocks that an agent of Cilium 1.20 has given up: since when, and which of them may be released.

Such an agent says that it no longer needs a block by leaving it out of its list, and takes it back by listing it again.
It hands addresses of a block out that it takes back before its list says so, so silence for the whole delay is
necessary but is no proof: right before the call the object and the node's addresses are read once more.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.blocks import releasable
from eni_tasks.domain.pool_demand import covered
from eni_tasks.domain.release import NO_RELEASE, Look, watermarks
from eni_tasks.domain.words import counted
from eni_tasks.model.node import ReleaseMemory
from eni_tasks.model.plan import Unassign, utc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from eni_tasks.model.network import Interface
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.state import NodeState

CONTRACT = "blocks"

# An agent's list may be this much older than what the agent does: it writes at most every 15 s, and after a conflict
# only with its next timer.
LEAST_DELAY_SECONDS = 75.0


def look(state: NodeState, policy: Policy, excess: int, now: float) -> Look:
    """Look at what a node's agent has given up, and decide what follows.

    Args:
        state: a node whose facts are known, recent and complete.
        policy: whether anything is released, and after which delay.
        excess: the most addresses that may go; 0 while the node needs some.
        now: the present, in Redis seconds.

    Returns:
        The look: its action releases blocks of one interface. Nothing is remembered while nothing may be released.
    """
    node, demand = state.node, state.node.demand
    if not policy.release_excess or demand is None:
        return Look(NO_RELEASE, None, ())
    attached = releasable(state.interfaces or (), node)
    before = state.memory.release
    if (before.contract, before.generation) != (CONTRACT, state.release_generation):
        since = marks({}, before=None, listed=demand.listed, attached=attached, now=now)
    else:
        # What is given up with one pre-allocate may be wanted with another.
        known = before.since if before.pre_allocate == node.pre_allocate else dict.fromkeys(before.since, now)
        since = marks(known, before=before.listed, listed=demand.listed, attached=attached, now=now)
    memory = ReleaseMemory(
        contract=CONTRACT,
        generation=state.release_generation,
        since=since,
        listed=tuple(sorted(demand.listed & attached.keys())),
        pre_allocate=node.pre_allocate,
    )
    over = [] if demand.changing else due(since, now=now, delay_seconds=policy.release_delay_seconds)
    chosen = within_excess(over, excess)
    return Look(memory, _unassign(chosen, attached), _explain(since, chosen, node))


def given_up_addresses(state: NodeState) -> frozenset[str]:
    """List the addresses of the blocks that an agent of Cilium 1.20 has given up, as far as is remembered."""
    memory = state.memory.release
    if (memory.contract, memory.generation) != (CONTRACT, state.release_generation) or state.node.demand is None:
        return frozenset()
    return frozenset(address for block in memory.since for address in expanded(_name(block)))


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


class Review(NamedTuple):
    """What a last look leaves of a planned release: the part that may be made, and why the rest may not.

    `memory` is that of releases from now on: the delay of what may not be released starts again.
    """

    allowed: Unassign | None
    why_not: str
    memory: ReleaseMemory


def review(planned: NodeState, fresh: Node, in_use: Iterable[str], action: Unassign, memory: ReleaseMemory) -> Review:
    """Decide with a last look what may be released.

    Args:
        planned: what the plan was made from.
        fresh: the node as the API server has it now.
        in_use: the node's addresses: of its pods, and its own.
        action: what is to be released.
        memory: the plan's memory of releases.
    """
    blocks = (*action.prefixes, *(f"{address}/32" for address in action.addresses))
    if why_not := _objection(planned.node, fresh):
        return Review(None, why_not, _restarted(memory, blocks, planned.now))
    free, taken_back = confirmed(blocks, listed=fresh.demand.listed if fresh.demand else (), in_use=in_use)
    allowed = msgspec.structs.replace(
        action,
        addresses=tuple(address for address in action.addresses if f"{address}/32" in free),
        prefixes=tuple(prefix for prefix in action.prefixes if prefix in free),
    )
    why_not = f"an address of {taken_back[0]} is in use" if taken_back else "its agent lists them again"
    memory = _restarted(memory, taken_back, planned.now)
    return Review(allowed if free else None, "" if len(free) == len(blocks) else why_not, memory)


def _objection(planned: Node, fresh: Node) -> str:
    """Say why nothing of what was planned may be done; "" if it may."""
    if (fresh.uid, fresh.instance_id) != (planned.uid, planned.instance_id):
        return "the node was replaced"
    if fresh.ignored or fresh.deleting:
        return "the node is to be left alone"
    if fresh.demand is None or planned.demand is None:
        return "its agent was exchanged"
    if watermarks(fresh) != watermarks(planned) or fresh.demand.ipv4 > planned.demand.ipv4:
        return "its agent asks for more, or its watermarks changed"
    return ""


def _restarted(memory: ReleaseMemory, blocks: Collection[str], now: float) -> ReleaseMemory:
    since = {block: now if block in blocks else at for block, at in memory.since.items()}
    return msgspec.structs.replace(memory, since=since)


def _unassign(chosen: list[str], attached: Mapping[str, Interface]) -> Unassign | None:
    """One call is for one interface: that of the block which comes first."""
    if not chosen:
        return None
    interface = attached[chosen[0]]
    blocks = [block for block in chosen if attached[block].id == interface.id]
    return Unassign(
        interface_id=interface.id,
        subnet_id=interface.subnet_id,
        addresses=tuple(_name(block) for block in blocks if block not in interface.prefixes),
        prefixes=tuple(block for block in blocks if block in interface.prefixes),
    )


def _explain(since: Mapping[str, float], chosen: Collection[str], node: Node) -> tuple[str, ...]:
    if not since:
        return ()
    count = sum(ip_network(block).num_addresses for block in since)
    began = utc(min(since.values()))
    first = f"The agent of {node.name} has given up blocks with {counted(count, 'address')}, the first at {began}."
    if not chosen:
        return (first, "They go after the delay, if they are in excess and no pod uses them.")
    return (first, f"Unassign {', '.join(chosen)}.")


def _name(block: str) -> str:
    """A block as EC2 names it: a prefix, or an address."""
    return block.removesuffix("/32")


def _order(block: str) -> tuple[int, int]:
    network = ip_network(block)
    return (0 if isinstance(network, IPv4Network) else 1), int(network.network_address)
