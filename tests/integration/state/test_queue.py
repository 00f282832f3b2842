"""Each rule of the work queue as a short story: what happens = what is answered."""

from __future__ import annotations

import threading

import pytest
from state_under_test import KIND, NODE, State

from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.model.work import Claim, WorkKind

STORIES = {
    # -- mark --
    "an idle node is sent": "mark=send",
    "a waiting message takes further marks": "mark=send mark=folded mark=folded",
    "a message that nobody served is sent again": "mark=send later:20 mark=send",
    "each further message gets more time": "mark=send later:20 mark=send later:39 mark=folded later:1 mark=send",
    "a mark during a run is folded": "mark=send claim:a=held mark=folded",
    "a mark finds a dead claim, and ends it": "mark=send claim:a=held later:30 mark=send finish:a=stale",
    "a message that was used counts no more": "mark=send later:20 sweep=n claim:a=held later:30 mark=send",
    "nor does a wait": "delayed:50=folded claim:a=held later:30 mark=send",
    "a delayed mark waits, then the sweep sends": "delayed:10=folded later:9 sweep= later:1 sweep=n sweep=",
    "a delay does not hold up a message on its way": "mark=send delayed:10=folded later:20 sweep=n",
    "ordinary news does not end a wait": "delayed:10=folded mark=folded later:9 sweep=",
    "news that ends a wait does": "delayed:10=folded news=send",
    "news and a message on its way": "mark=send news=folded",
    "a wait that is over is sent by a mark too": "delayed:10=folded later:10 mark=send",
    # -- claim --
    "a person's task needs no mark": "claim:a=held finish:a=done",
    "one holder at a time": "mark=send claim:a=held claim:b=busy",
    "a doubled message finds the node busy, then nothing to lose": "mark=send claim:a=held claim:b=busy finish:a=done",
    "a dead holder's node can be claimed": "claim:a=held later:30 claim:b=held",
    "a claim ends a wait": "delayed:10=folded claim:a=held finish:a=done",
    # -- renew --
    "a renewed lease lives longer": "claim:a=held later:29 renew:a=held later:29 claim:b=busy",
    "a lease that ran out can't be renewed": "claim:a=held later:30 renew:a=lost",
    "somebody else's lease can't be renewed": "claim:a=held later:30 claim:b=held renew:a=lost renew:b=held",
    # -- finish --
    "nothing new: gone": "mark=send claim:a=held finish:a=done mark=send",
    "news during the run: sent again": "mark=send claim:a=held mark=folded finish:a=send claim:b=held finish:b=done",
    "the run knows of more work": "mark=send claim:a=held finish:a:0=send mark=folded",
    "the run wants to wait": "mark=send claim:a=held finish:a:9=waiting later:8 sweep= later:1 sweep=n",
    "ordinary news during the run leaves the wait": "claim:a=held mark=folded finish:a:9=waiting mark=folded",
    "news that ends a wait during the run": "claim:a=held news=folded finish:a:9=send",
    "the kick belongs to one run": "claim:a=held news=folded finish:a=send claim:a=held finish:a:9=waiting",
    "twice": "claim:a=held finish:a=done finish:a=stale",
    "after another took over": "claim:a=held later:30 claim:b=held finish:a=stale finish:b=done",
    "after the sweep sent it again": "mark=send claim:a=held later:30 sweep=n finish:a=stale claim:b=held",
    "late, but nobody noticed": "mark=send claim:a=held later:30 finish:a=done",
    # -- sweep --
    "nothing is overdue": "mark=send sweep=",
    "a lost message": "mark=send later:20 sweep=n sweep=",
    "back-off": "mark=send later:20 sweep=n later:39 sweep= later:1 sweep=n later:79 sweep= later:1 sweep=n",
    "a dead worker": "mark=send claim:a=held later:29 sweep= later:1 sweep=n",
    "a living worker": "mark=send claim:a=held later:25 renew:a=held later:25 sweep=",
    "a claim ends it": "mark=send later:20 sweep=n claim:a=held finish:a:1=waiting later:1 sweep=n later:20 sweep=n",
    "a message of finish counts": "claim:a=held finish:a:0=send later:20 sweep=n later:39 sweep= later:1 sweep=n",
    # -- forget --
    "a node that is gone": "mark=send forget later:99 sweep=",
    "a node that is gone while it runs": "claim:a=held forget finish:a=stale",
    "a node that comes back while it runs": "claim:a=held forget mark=send finish:a=stale claim:b=held",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(state: State, story: str) -> None:
    claims: dict[str, Claim] = {}
    for step in story.split():
        what, _, expected = step.partition("=")
        operation, *args = what.split(":")
        assert play(state, claims, operation, args) == expected, step


def play(  # noqa: C901, PLR0911 - one case per operation of the stories
    state: State, claims: dict[str, Claim], operation: str, args: list[str]
) -> str:
    queue, items = state.queue, [(NODE, Urgency.DEFICIT)]
    match operation, args:
        case "mark", []:
            return "send" if queue.enqueue(KIND, items) else "folded"
        case "news", []:
            return "send" if queue.enqueue(KIND, items, ends_wait=True) else "folded"
        case "delayed", [seconds]:
            return "send" if queue.enqueue(KIND, items, delay_seconds=float(seconds)) else "folded"
        case "claim", [who]:
            claim = queue.claim(KIND, NODE)
            if claim is not None:
                claims[who] = claim
            return "busy" if claim is None else "held"
        case "renew", [who]:
            return "lost" if queue.renew([claims[who]]) else "held"
        case "finish", [who, *again]:
            return queue.finish(claims[who], again_after_seconds=float(again[0]) if again else None)
        case "sweep", []:
            return ",".join(queue.requeue_overdue(KIND, 10))
        case "forget", []:
            queue.remove(NODE)
        case "later", [seconds]:
            state.later(float(seconds))
        case _:
            raise ValueError(operation)
    return ""


def test_fences_grow_even_when_redis_was_emptied(state: State) -> None:
    first = state.claim("a")
    second = state.claim("b")
    state.client.delete(state.keys.fence)
    third = state.claim("c")
    assert first.fence < second.fence < third.fence


def test_a_claim_says_which_generation_it_saw(state: State) -> None:
    state.queue.enqueue(KIND, [(NODE, Urgency.EMPTY)] * 3)
    assert state.claim().revision == 3


def test_a_repeated_claim_finds_its_own_token(state: State) -> None:
    keys = [state.keys.work(KIND, NODE), state.keys.pending(KIND), state.keys.fence]
    answers = [state.connection.run("claim", keys, [NODE, "token", 30_000]) for _ in range(2)]
    assert answers[0] == answers[1] is not None


def test_pending_follows_the_lease_and_the_sweep_looks_at_both(state: State) -> None:
    claim = state.claim()
    state.later(25)
    state.queue.renew([claim])
    state.later(25)
    assert state.summary.read(()).work[KIND].overdue_count == 0
    state.client.zadd(state.keys.pending(KIND), {NODE: 1})
    assert state.queue.requeue_overdue(KIND, 9) == []
    assert state.summary.read(()).work[KIND].overdue_count == 0


def test_kinds_do_not_meet(state: State) -> None:
    state.claim(kind=WorkKind.MAINTAIN)
    assert state.claim(kind=WorkKind.PUBLISH)


def test_the_sweep_sends_urgent_nodes_first_and_no_more_than_asked(state: State) -> None:
    urgencies = [Urgency.CLEANUP, Urgency.RELEASE, Urgency.EMPTY, Urgency.DEFICIT]
    state.queue.enqueue(KIND, [(NodeName(u.name), u) for u in urgencies])
    state.later(20)
    assert state.queue.requeue_overdue(KIND, 2) == ["EMPTY", "DEFICIT"]
    assert state.queue.requeue_overdue(KIND, 9) == ["RELEASE", "CLEANUP"]


def test_the_most_urgent_mark_counts_until_the_work_is_done(state: State) -> None:
    other = NodeName("other")
    state.queue.enqueue(KIND, [(NODE, Urgency.EMPTY), (NODE, Urgency.CLEANUP), (other, Urgency.DEFICIT)])
    state.queue.finish(state.claim(NODE), again_after_seconds=0)
    state.later(20)
    assert state.queue.requeue_overdue(KIND, 1) == [NODE]


def test_many_marks_and_many_claims_in_one_call(state: State) -> None:
    names = [NodeName(f"n{i}") for i in range(450)]
    assert state.queue.enqueue(KIND, [(name, Urgency.DEFICIT) for name in names]) == names
    claims = [state.claim(name) for name in names[:3]]
    state.queue.finish(claims[1])
    assert state.queue.renew(claims) == [claims[1]]


def test_a_sweep_takes_each_node_once_however_many_sweep(state: State) -> None:
    names = {NodeName(f"n{i}") for i in range(300)}
    state.queue.enqueue(KIND, [(name, Urgency.DEFICIT) for name in names])
    state.later(20)
    swept: list[NodeName] = []
    threads = [threading.Thread(target=lambda: swept.extend(state.queue.requeue_overdue(KIND, 100))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(swept) == len(names)
    assert set(swept) == names


def test_of_many_that_claim_at_once_one_gets_it(state: State) -> None:
    for _ in range(20):
        barrier, won = threading.Barrier(8), []

        def race(barrier: threading.Barrier = barrier, won: list[Claim | None] = won) -> None:
            barrier.wait()
            won.append(state.queue.claim(KIND, NODE))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (claim,) = filter(None, won)
        state.queue.finish(claim)


def test_the_backlog_counts_what_is_late(state: State) -> None:
    idle = state.summary.read(()).work[KIND]
    assert (idle.pending_count, idle.overdue_count, idle.oldest_overdue_seconds) == (0, 0, 0)
    state.queue.enqueue(KIND, [(NodeName("a"), Urgency.DEFICIT), (NodeName("b"), Urgency.DEFICIT)])
    state.claim("a")
    state.later(25)
    backlog = state.summary.read(()).work[KIND]
    assert (backlog.pending_count, backlog.overdue_count) == (2, 1)
    assert backlog.oldest_overdue_seconds == pytest.approx(5, abs=1)


def test_done_work_leaves_nothing_behind(state: State) -> None:
    state.queue.enqueue(KIND, [(NODE, Urgency.DEFICIT)])
    state.queue.finish(state.claim())
    state.queue.enqueue(WorkKind.PUBLISH, [(NODE, Urgency.DEFICIT)])
    state.queue.remove(NODE)
    assert state.left_over() == []
