"""Giving excess addresses back: which are asked for, which the agent has let go, and what the object shows of it.

No address that a pod may use is given back. The operator's view of usage is old by up to 15 s and more, so the agent
decides. By which contract it is asked depends on its version:

- *Hand-shake*, agents of Cilium 1.12 to 1.19: an address that was in excess for the whole delay is marked in the map
  `status.ipam.release-ips`. The agent answers `ready-for-release`, and hands it out no more, or `do-not-release`.
- *Withdrawal*, agents of 1.6, only by a setting: the address leaves the pool. If the agent does not report it as used
  for the whole delay, it is taken to have let it go.

Whatever stops being in excess, in use or not, is forgotten at once, and its clock starts anew. A question is put only
after the delay and only while the object shows nothing of an earlier one, so that an old answer counts for nothing; and
a mark is taken back only when the memory no longer has the question, which changes under the node's claim alone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.excess import candidates
from eni_tasks.domain.words import counted
from eni_tasks.model.node import Mark, ReleaseMemory
from eni_tasks.model.plan import Unassign, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from eni_tasks.domain.excess import Candidates
    from eni_tasks.model.node import Node, Policy
    from eni_tasks.model.plan import Figures
    from eni_tasks.model.state import NodeState

NO_RELEASE = ReleaseMemory()


class Contract(StrEnum):
    """How an agent is asked."""

    HANDSHAKE = "handshake"
    WITHDRAWAL = "withdrawal"


class Answer(StrEnum):
    """What the object shows of a candidate, all its addresses together."""

    NOTHING = "nothing"  # no trace of a question
    PENDING = "pending"  # a question, and no answer that can be used
    AGREED = "agreed"
    REFUSED = "refused"


class Clock(NamedTuple):
    """Since when a name is a candidate without interruption, and since when the agent is asked (None: it is not)."""

    since: float
    asked: float | None = None


class Next(NamedTuple):
    """A candidate's clock from now on (None: it is forgotten), and whether it may be given back now."""

    clock: Clock | None
    release: bool = False


class Look(NamedTuple):
    """What one look at a node leads to: its memory from now on, what to give back now, and sentences for people."""

    memory: ReleaseMemory
    action: Unassign | None
    explanation: tuple[str, ...]


def contract(node: Node, policy: Policy) -> Contract | None:
    """Say how a node's agent is asked; None if nothing may be given back."""
    if not policy.release_excess or node.demand is not None:
        return None
    if node.old_fields:
        return Contract.WITHDRAWAL if policy.release_16 else None
    return Contract.HANDSHAKE


def look(state: NodeState, policy: Policy, known: Figures, now: float) -> Look:
    """Look at what is in excess, and decide what follows.

    Args:
        state: a node whose facts are known, recent and complete, and that needs nothing.
        policy: whether, and after which delay.
        known: the node's figures.
        now: the present, in Redis seconds.

    Returns:
        The look; a memory without clocks if nothing is in excess or may be given back.
    """
    how = contract(state.node, policy)
    if how is None or known.excess == 0:
        return Look(NO_RELEASE, None, _why_not(state.node, policy, known))
    clocks = clocks_of(state, how)
    found = candidates(state, known.excess, clocks.keys())
    if found is None:
        return Look(NO_RELEASE, None, (f"{known.excess} addresses are in excess, but none of them is free to go.",))
    answers = {name: answer(state.node, how, name) for name in found.names}
    step, delay = STEPS[how], policy.release_delay_seconds
    kept, let_go = advance(clocks, answers, lambda clock, given: step(clock, given, now, delay), now)
    memory = memory_of(how, state.release_generation, kept)
    explanation = _explain(known, found, answers, memory, let_go)
    return Look(memory, _unassign(found, let_go), explanation)


def advance(
    clocks: Mapping[str, Clock], answers: Mapping[str, Answer], step: Callable[[Clock, Answer], Next], now: float
) -> tuple[dict[str, Clock], frozenset[str]]:
    """Move all clocks on.

    Args:
        clocks: as they were; those of names that are no longer candidates are forgotten.
        answers: what the object shows of each candidate.
        step: the contract's state table.
        now: when the clock of a new candidate starts.

    Returns:
        The clocks from now on, and the names that may be given back now.
    """
    nexts = {name: step(clocks.get(name, Clock(now)), given) for name, given in answers.items()}
    kept = {name: each.clock for name, each in nexts.items() if each.clock is not None}
    return kept, frozenset(name for name, each in nexts.items() if each.release)


def handshake(clock: Clock, given: Answer, now: float, delay: float) -> Next:
    """The hand-shake's state table, for a candidate.

    An answer counts only if it was asked for after the delay. What the object shows before that is of an earlier
    question: it is taken back first (see `marks`).
    """
    if now - clock.since < delay:
        return Next(clock)
    if clock.asked is None:
        return Next(clock._replace(asked=now) if given is Answer.NOTHING else clock)
    if given is Answer.REFUSED:
        return Next(None)
    return Next(clock, release=given is Answer.AGREED)


def withdrawal(clock: Clock, given: Answer, now: float, delay: float) -> Next:
    """The state table for agents that can't be asked, for a candidate; AGREED: the object's pool does not show it.

    The second delay begins when the object was last seen to show the address.
    """
    if now - clock.since < delay:
        return Next(clock)
    if clock.asked is None or given is not Answer.AGREED:
        return Next(clock._replace(asked=now))
    return Next(clock, release=now - clock.asked >= delay)


STEPS = {Contract.HANDSHAKE: handshake, Contract.WITHDRAWAL: withdrawal}


def answer(node: Node, how: Contract, name: str) -> Answer:
    """Read what an object shows of a candidate."""
    addresses = expanded(name)
    if how is Contract.WITHDRAWAL:
        return Answer.AGREED if node.pool.keys().isdisjoint(addresses) else Answer.NOTHING
    shown = {node.release_ips.get(address) for address in addresses}
    if shown == {None}:
        return Answer.NOTHING
    if Mark.KEPT in shown:
        return Answer.REFUSED
    return Answer.AGREED if shown == {Mark.READY} else Answer.PENDING


def clocks_of(state: NodeState, how: Contract) -> dict[str, Clock]:
    """Read a node's clocks; none if they are of another contract or state generation."""
    memory = state.memory.release
    if (memory.contract, memory.generation) != (how, state.release_generation):
        return {}
    return {name: Clock(since, memory.asked.get(name)) for name, since in memory.since.items()}


def memory_of(how: str, generation: str, clocks: Mapping[str, Clock]) -> ReleaseMemory:
    """Write clocks down; without any there is nothing to remember."""
    if not clocks:
        return NO_RELEASE
    return ReleaseMemory(
        contract=how,
        generation=generation,
        since={name: clock.since for name, clock in clocks.items()},
        asked={name: clock.asked for name, clock in clocks.items() if clock.asked is not None},
    )


# -- what the object shows -----------------------------------------------------------------------------
def asked_addresses(state: NodeState, how: Contract) -> frozenset[str]:
    """List the addresses that the agent is asked to give up.

    Whether the setting or the object have changed meanwhile is for the next look to find out: it holds the claim under
    which addresses are given back, so that none becomes usable again while that happens.
    """
    memory = state.memory.release
    if (memory.contract, memory.generation) != (how, state.release_generation):
        return frozenset()
    return frozenset(address for name in memory.asked for address in expanded(name))


def marks(shown: Mapping[str, str], *, asked: Collection[str], held: Collection[str]) -> dict[str, str]:
    """Say what `status.ipam.release-ips` is to show.

    Args:
        shown: what it shows.
        asked: addresses that the agent is asked to give up.
        held: the addresses that the instance has.

    Returns:
        State by address. An answer stays as it is while the question stands; an address that the agent let go and
        that is gone is released; the agent deletes that entry, unless the address was assigned again.
    """
    found = {address: mark_of(shown.get(address), address in asked, address in held) for address in {*shown, *asked}}
    return {address: mark for address, mark in found.items() if mark is not None}


def mark_of(shown: str | None, asked: bool, held: bool) -> str | None:  # noqa: FBT001 - a table
    """Say what one address is to show; None: no entry. See `marks`."""
    if not held:
        return Mark.RELEASED if shown in (Mark.READY, Mark.RELEASED) else None
    if not asked or shown == Mark.RELEASED:
        return None
    return shown or Mark.MARKED


# -- right before the call -----------------------------------------------------------------------------
def objection(planned: Node, fresh: Node, action: Unassign) -> str:
    """Say why a fresh look at the object forbids what was planned; "" if it does not.

    Args:
        planned: the node that the plan was made for.
        fresh: the node as the API server has it now.
        action: what is to be given back.
    """
    if (fresh.uid, fresh.instance_id) != (planned.uid, planned.instance_id):
        return "the node was replaced"
    if fresh.ignored or fresh.deleting:
        return "the node is to be left alone"
    if _ways(fresh) != _ways(planned):
        return "its agent or its watermarks changed"
    if more := fresh.used - planned.used:
        return f"{len(more)} more addresses are used"
    how = Contract.WITHDRAWAL if fresh.old_fields else Contract.HANDSHAKE
    names = (*action.prefixes, *action.addresses)
    kept = [name for name in names if answer(fresh, how, name) is not Answer.AGREED]
    # None of what was planned is used, and nothing more is used than then.
    return f"the agent has not let {', '.join(kept)} go" if kept else ""


def _ways(node: Node) -> tuple[object, ...]:
    return node.old_fields, node.demand is None, *watermarks(node)


def watermarks(node: Node) -> tuple[int, ...]:
    """Give what decides how many addresses a node may hold, and on which interfaces."""
    marks = (node.min_allocate, node.pre_allocate, node.max_allocate, node.max_above_watermark)
    return (*marks, node.first_interface_index, node.use_primary_address)


# -- words ---------------------------------------------------------------------------------------------
def _unassign(found: Candidates, let_go: Collection[str]) -> Unassign | None:
    if not let_go:
        return None
    return Unassign(
        interface_id=found.interface.id,
        subnet_id=found.interface.subnet_id,
        addresses=tuple(name for name in found.addresses if name in let_go),
        prefixes=tuple(name for name in found.prefixes if name in let_go),
    )


def _explain(
    known: Figures,
    found: Candidates,
    answers: Mapping[str, Answer],
    memory: ReleaseMemory,
    let_go: Collection[str],
) -> tuple[str, ...]:
    sentences = [f"{known.excess} addresses are in excess; {found.interface.id} can give {found.address_count} back."]
    refused = [name for name, given in answers.items() if given is Answer.REFUSED]
    waiting = [name for name in memory.since if name not in memory.asked]
    pending = [name for name in memory.asked if name not in let_go]
    if let_go:
        sentences.append(f"The agent has let {_counted(let_go)} go: unassign them.")
    if pending:
        since = utc(min(memory.asked[name] for name in pending))
        sentences.append(
            f"The agent has been asked for {_counted(pending)} since {since}, and has not let them go yet."
        )
    if waiting:
        since = utc(min(memory.since[name] for name in waiting))
        sentences.append(
            f"{_counted(waiting)} have been in excess since {since}, and the agent is asked after the delay."
        )
    if refused:
        sentences.append(f"The agent refuses to let {_counted(refused)} go.")
    return tuple(sentences)


def _counted(names: Iterable[str]) -> str:
    return counted(sum(len(expanded(name)) for name in names), "address")


def _why_not(node: Node, policy: Policy, known: Figures) -> tuple[str, ...]:
    if known.excess == 0 or not policy.release_excess:
        return ()
    why = "its agent, of Cilium 1.6, can't be asked" if node.old_fields else "its agent can't be asked"
    return (f"{known.excess} addresses are in excess, and stay: {why}.",)
