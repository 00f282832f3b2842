"""The release of excess addresses, exhaustively: every state of the hand-shake with every event."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from vector_world import POLICY
from worlds import eni, world

from eni_tasks.domain import release
from eni_tasks.domain.planner import plan
from eni_tasks.domain.release import Answer, Clock, Contract, Next
from eni_tasks.domain.status import desired
from eni_tasks.model.cilium_node import CiliumNode, IpamStatus, Status
from eni_tasks.model.node import Mark, Memory, PoolDemand, ReleaseMemory
from eni_tasks.model.plan import Reason, Unassign

if TYPE_CHECKING:
    from eni_tasks.model.plan import Plan
    from eni_tasks.model.state import NodeState

NOW, DELAY = 1000.0, 180.0
ON = msgspec.structs.replace(POLICY, release_excess=True, release_delay_seconds=DELAY)
ON_16 = msgspec.structs.replace(ON, release_16=True)

# -- the tables ----------------------------------------------------------------------------------------
YOUNG, DUE = Clock(NOW - DELAY + 1), Clock(NOW - DELAY)
ASKED = DUE._replace(asked=NOW - DELAY + 1)
LONG_ASKED = Clock(NOW - 2 * DELAY, NOW - DELAY)
ASKS = Next(DUE._replace(asked=NOW))

HANDSHAKE = {
    (YOUNG, Answer.NOTHING): Next(YOUNG),
    (YOUNG, Answer.PENDING): Next(YOUNG),
    (YOUNG, Answer.AGREED): Next(YOUNG),
    (YOUNG, Answer.REFUSED): Next(YOUNG),
    (DUE, Answer.NOTHING): ASKS,
    (DUE, Answer.PENDING): Next(DUE),
    (DUE, Answer.AGREED): Next(DUE),
    (DUE, Answer.REFUSED): Next(DUE),
    (ASKED, Answer.NOTHING): Next(ASKED),
    (ASKED, Answer.PENDING): Next(ASKED),
    (ASKED, Answer.AGREED): Next(ASKED, release=True),
    (ASKED, Answer.REFUSED): Next(None),
}
WITHDRAWAL = {
    (YOUNG, Answer.NOTHING): Next(YOUNG),
    (YOUNG, Answer.AGREED): Next(YOUNG),
    (DUE, Answer.NOTHING): ASKS,
    (DUE, Answer.AGREED): ASKS,
    (ASKED, Answer.NOTHING): ASKS,
    (ASKED, Answer.AGREED): Next(ASKED),
    (LONG_ASKED, Answer.NOTHING): Next(LONG_ASKED._replace(asked=NOW)),
    (LONG_ASKED, Answer.AGREED): Next(LONG_ASKED, release=True),
}


@pytest.mark.parametrize("clock", [YOUNG, DUE, ASKED])
@pytest.mark.parametrize("given", list(Answer))
def test_the_handshakes_table(clock: Clock, given: Answer) -> None:
    assert release.handshake(clock, given, NOW, DELAY) == HANDSHAKE[clock, given]


@pytest.mark.parametrize("clock", [YOUNG, DUE, ASKED, LONG_ASKED])
@pytest.mark.parametrize("given", [Answer.NOTHING, Answer.AGREED])
def test_the_withdrawals_table(clock: Clock, given: Answer) -> None:
    assert release.withdrawal(clock, given, NOW, DELAY) == WITHDRAWAL[clock, given]


def test_a_name_that_is_no_candidate_is_forgotten_and_a_new_one_starts_now() -> None:
    kept, let_go = release.advance({"gone": ASKED}, {"new": Answer.NOTHING}, lambda clock, _: Next(clock), NOW)
    assert (kept, let_go) == ({"new": Clock(NOW)}, frozenset())


SHOWN = (None, *Mark, "a word of another's")
# What one address is to show: (shown, asked, held) → state; where a row is missing, no entry.
MARKS = {
    (None, True, True): Mark.MARKED,
    (Mark.MARKED, True, True): Mark.MARKED,
    (Mark.READY, True, True): Mark.READY,
    (Mark.KEPT, True, True): Mark.KEPT,
    ("a word of another's", True, True): "a word of another's",
    (Mark.READY, True, False): Mark.RELEASED,
    (Mark.READY, False, False): Mark.RELEASED,
    (Mark.RELEASED, True, False): Mark.RELEASED,
    (Mark.RELEASED, False, False): Mark.RELEASED,
}


@pytest.mark.parametrize(("shown", "asked", "held"), [*product(SHOWN, (True, False), (True, False))])
def test_what_the_object_is_to_show(shown: str | None, *, asked: bool, held: bool) -> None:
    assert release.mark_of(shown, asked, held) == MARKS.get((shown, asked, held))


@pytest.mark.parametrize(("shown", "asked", "held"), [*product(SHOWN, (True, False), (True, False))])
def test_the_agents_answer_stays_while_the_question_stands(shown: str | None, *, asked: bool, held: bool) -> None:
    """An address that the agent hands out no more becomes usable only if nobody is asked for it any more."""
    after = release.mark_of(shown, asked, held)
    if asked and held and shown in (Mark.MARKED, Mark.READY, Mark.KEPT):
        assert after == shown
    if after is None and held:
        assert not asked or shown == Mark.RELEASED


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([None], Answer.NOTHING),
        ([Mark.MARKED], Answer.PENDING),
        ([Mark.READY], Answer.AGREED),
        ([Mark.KEPT], Answer.REFUSED),
        ([Mark.RELEASED], Answer.PENDING),
        ([None, Mark.READY], Answer.PENDING),
        ([Mark.MARKED, Mark.READY], Answer.PENDING),
        ([Mark.READY, Mark.KEPT], Answer.REFUSED),
    ],
    ids=str,
)
def test_a_prefix_is_answered_by_all_its_addresses(states: list[str | None], expected: Answer) -> None:
    several = states * 16
    shown = {f"10.0.0.{last}": state for last, state in zip(range(16), several, strict=False) if state is not None}
    node = msgspec.structs.replace(world(eni(1, 1)).node, release_ips=shown)
    assert release.answer(node, Contract.HANDSHAKE, "10.0.0.0/28") is expected


# -- whole nodes ---------------------------------------------------------------------------------------
# Of twelve addresses nine are held: two may stay, and with eight free ones wanted one is in excess.
A = "10.1.1.0"
CLOCKS = {"none": None, "young": YOUNG, "due": DUE, "asked": ASKED}


def node(clock: Clock | None, shown: str | None, **more: Any) -> NodeState:
    memory = ReleaseMemory()
    if clock is not None:
        memory = release.memory_of(Contract.HANDSHAKE, "g", {A: clock})
    given = {"pre_allocate": 8, "used": 0, "memory": Memory(release=memory)}
    marks = {} if shown is None else {A: shown}
    state = world(eni(0, 0), eni(1, 9), **given | more)
    owner = msgspec.structs.replace(
        state.node, release_ips=marks, pool=dict.fromkeys(state.interfaces[1].addresses, "eni-1")
    )
    obj = CiliumNode(status=Status(ipam=IpamStatus(release_ips=marks)))
    return msgspec.structs.replace(state, node=owner, obj=obj, generation="g", now=NOW)


def used(state: NodeState) -> NodeState:
    # The pod that has it is one more, so that as many are in excess with one address more.
    more = eni(1, 10)
    return with_node(with_facts(state, interfaces=(state.interfaces[0], more)), used=frozenset({A}))


def with_node(state: NodeState, **changes: Any) -> NodeState:
    return msgspec.structs.replace(state, node=msgspec.structs.replace(state.node, **changes))


def with_facts(state: NodeState, **changes: Any) -> NodeState:
    return msgspec.structs.replace(state, facts=msgspec.structs.replace(state.facts, **changes))


def without_a(state: NodeState) -> NodeState:
    first, second = state.interfaces
    others = (*second.addresses[1:], "10.1.1.100")
    return with_facts(state, interfaces=(first, msgspec.structs.replace(second, addresses=others)))


# What happens to the node → (its state then, the policy, whether anything can be decided about releases).
EVENTS: dict[str, Any] = {
    "nothing": lambda state: (state, ON, True),
    "used": lambda state: (used(state), ON, True),
    "gone from EC2": lambda state: (without_a(state), ON, True),
    "in deficit": lambda state: (with_node(state, pre_allocate=12), ON, True),
    "no excess": lambda state: (with_node(state, pre_allocate=9), ON, True),
    "off": lambda state: (state, POLICY, True),
    "generation lost": lambda state: (msgspec.structs.replace(state, generation="h"), ON, True),
    "agent of 1.20": lambda state: (with_node(state, demand=PoolDemand()), ON, True),
    "agent of 1.6": lambda state: (with_node(state, old_fields=True), ON, True),
    "agent of 1.6, forced": lambda state: (with_node(state, old_fields=True), ON_16, True),
    "ignored": lambda state: (with_node(state, ignored=True), ON, False),
    "being deleted": lambda state: (with_node(state, deleting=True), ON, False),
    "instance of another": lambda state: (msgspec.structs.replace(state, instance_owner="other"), ON, False),
    "unread": lambda state: (msgspec.structs.replace(state, facts=None), ON, False),
    "mutation pending": lambda state: (with_facts(state, mutation_pending=True), ON, False),
    "unconfirmed": lambda state: (with_facts(state, unconfirmed_since=NOW), ON, False),
    "lacking": lambda state: (with_facts(state, lacking={"10.1.1.5": NOW}), ON, False),
    "too old": lambda state: (with_facts(state, described_at=NOW - 301), ON, False),
    "limits unknown": lambda state: (msgspec.structs.replace(state, limits=None), ON, False),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("shown", SHOWN)
def test_every_state_with_every_event(shown: str | None, clock: str, event: str) -> None:
    before = node(CLOCKS[clock], shown)
    state, policy, decidable = EVENTS[event](before)
    decided = plan(state, policy, NOW)

    wanted = event == "nothing" and clock == "asked" and shown == Mark.READY
    assert (decided.action == Unassign(interface_id="eni-1", subnet_id="subnet-a", addresses=(A,))) is wanted
    assert isinstance(decided.action, Unassign) is wanted
    if not decidable:
        assert decided.release is None
        return
    known = decided.release.since.get(A)
    if event == "nothing":
        forgotten = clock == "asked" and shown == Mark.KEPT
        assert known == (None if forgotten else CLOCKS[clock].since if CLOCKS[clock] else NOW)
        assert (A in decided.release.asked) is (not forgotten and (clock == "asked" or (clock == "due" and not shown)))
    elif event in ("generation lost", "agent of 1.6, forced"):
        assert known == NOW
        assert not decided.release.asked
    else:
        assert known is None
        assert A not in decided.release.asked


@pytest.mark.parametrize("event", ["nothing", "used", "in deficit", "no excess", "off"])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("shown", SHOWN)
def test_marks_follow_the_memory(shown: str | None, clock: str, event: str) -> None:
    state, policy, _ = EVENTS[event](node(CLOCKS[clock], shown))
    state = msgspec.structs.replace(state, memory=Memory(release=plan(state, policy, NOW).release))
    marks = desired(state.obj, state, policy).release_ips
    asked = event == "nothing" and ((clock == "asked" and shown != Mark.KEPT) or (clock == "due" and shown is None))
    assert marks == ({A: shown or Mark.MARKED} if asked and shown != Mark.RELEASED else {})


def test_another_machine_under_the_name_has_no_memory_of_it() -> None:
    """`node_state.assemble` drops the memory of another uid or instance as a whole."""
    state = msgspec.structs.replace(node(ASKED, Mark.READY), memory=Memory())
    decided = plan(state, ON, NOW)
    assert decided.action is None
    assert decided.release.since == {A: NOW}


# -- right before the call -----------------------------------------------------------------------------
ACTION = Unassign(interface_id="eni-1", subnet_id="subnet-a", addresses=(A,))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"uid": "other"}, "replaced"),
        ({"instance_id": "i-2"}, "replaced"),
        ({"ignored": True}, "left alone"),
        ({"deleting": True}, "left alone"),
        ({"demand": PoolDemand()}, "agent"),
        ({"old_fields": True}, "agent"),
        ({"pre_allocate": 9}, "watermarks"),
        ({"min_allocate": 9}, "watermarks"),
        ({"used": frozenset({A})}, "used"),
        ({"used": frozenset({"10.1.1.5"})}, "1 more addresses are used"),
        ({"release_ips": {}}, f"not let {A} go"),
        ({"release_ips": {A: Mark.MARKED}}, f"not let {A} go"),
        ({"release_ips": {A: Mark.KEPT}}, f"not let {A} go"),
        ({"release_ips": {A: Mark.RELEASED}}, f"not let {A} go"),
    ],
    ids=str,
)
def test_what_a_fresh_look_forbids(changes: dict[str, Any], words: str) -> None:
    planned = node(ASKED, Mark.READY).node
    found = release.objection(planned, msgspec.structs.replace(planned, **changes), ACTION)
    assert words in found
    assert bool(found) is bool(words)


def test_a_fresh_look_at_an_agent_that_cannot_be_asked() -> None:
    planned = msgspec.structs.replace(node(None, None).node, old_fields=True, pool={})
    assert release.objection(planned, planned, ACTION) == ""
    shown = msgspec.structs.replace(planned, pool={A: "eni-1"})
    assert A in release.objection(planned, shown, ACTION)


# -- what is chosen, and the words for it ----------------------------------------------------------------
def decided(*interfaces: Any, **more: Any) -> Plan:
    given = {"pre_allocate": 2, "used": 0} | more
    return plan(world(eni(0, 0), *interfaces, **given), ON, NOW)


def test_no_clock_starts_for_what_pods_may_not_get_back() -> None:
    excluded = eni(2, 9, tags={"no": "pods"})
    found = decided(eni(1, 5), excluded, exclude_interface_tags={"no": "pods"})
    assert found.release.since == dict.fromkeys(("10.1.1.0", "10.1.1.1", "10.1.1.2"), NOW)


def test_the_primary_stays_although_pods_may_get_it() -> None:
    found = decided(eni(1, 2), pre_allocate=1, use_primary_address=True)
    assert found.figures.excess == 2
    assert found.release.since.keys() == {"10.1.1.0", "10.1.1.1"}


def test_whole_prefixes_go_first_and_only_while_sixteen_are_in_excess() -> None:
    both = eni(1, 5, prefixes=("10.9.0.0/28", "10.9.0.16/28"))
    assert decided(both, pre_allocate=3).release.since.keys() == {"10.9.0.0/28", "10.9.0.16/28", "10.1.1.0", "10.1.1.1"}
    assert decided(both, pre_allocate=20).release.since.keys() == {"10.9.0.0/28", "10.1.1.0"}
    assert decided(both, pre_allocate=22).release.since.keys() == {f"10.1.1.{last}" for last in range(5)}
    busy = frozenset({"10.9.0.3"})
    assert decided(both, pre_allocate=3, used=busy).release.since.keys() >= {"10.9.0.16/28"}


def test_a_release_under_way_is_not_given_up_for_an_address_that_became_free() -> None:
    begun = Memory(release=release.memory_of(Contract.HANDSHAKE, "", {"10.2.1.4": ASKED}))
    # Both interfaces can give one back; the second one's was asked for first.
    found = decided(eni(1, 5), eni(2, 5), pre_allocate=9, memory=begun)
    assert found.release.since == {"10.2.1.4": ASKED.since}


def test_nothing_is_free_to_go() -> None:
    found = decided(eni(1, 3), pre_allocate=1, used=frozenset({"10.1.1.0", "10.1.1.1", "10.1.1.2"}) - {"10.1.1.2"})
    assert found.release == release.NO_RELEASE
    primaries = decided(eni(1, 0), eni(2, 0), pre_allocate=1, use_primary_address=True)
    assert (primaries.action, primaries.reason, primaries.blocked) == (None, Reason.AT_SIZE, False)
    assert "none of them is free to go" in primaries.explanation[-1]


@pytest.mark.parametrize(
    ("clock", "shown", "words"),
    [
        (None, None, "in excess since"),
        (ASKED, None, "has been asked"),
        (ASKED, Mark.READY, "has let 1 address go: unassign"),
        (ASKED, Mark.KEPT, "refuses to let 1 address go"),
    ],
    ids=["waits", "asked", "agreed", "refused"],
)
def test_people_are_told_how_far_it_is(clock: Clock | None, shown: str | None, words: str) -> None:
    explanation = plan(node(clock, shown), ON, NOW).explanation
    assert "1 addresses are in excess; eni-1 can give 1 back." in explanation
    assert words in explanation[-1]


def test_people_are_told_why_nothing_goes() -> None:
    old = with_node(node(None, None), old_fields=True)
    assert "1.6, can't be asked" in plan(old, ON, NOW).explanation[-1]
    assert plan(old, POLICY, NOW).explanation[-1].endswith("nothing is needed.")
