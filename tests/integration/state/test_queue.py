"""Each rule of the work queue as a short story: what happens = what is answered."""

from __future__ import annotations

import threading

import pytest
from state_under_test import KIND, NODE, State

from eni_tasks.model.network import NodeName
from eni_tasks.model.plan import Urgency
from eni_tasks.model.work import Claim, WorkKind

STORIES = {
    # -- enqueue --
    "an idle node is sent": "enqueue=send",
    "further work is merged into a waiting message": "enqueue=send enqueue=merged enqueue=merged",
    "a message that no worker served is sent again": "enqueue=send later:20 enqueue=send",
    "each further message gets more time": "enqueue=send later:20 enqueue=send "
    "later:39 enqueue=merged later:1 enqueue=send",
    "work enqueued during a run is merged": "enqueue=send claim:a=held enqueue=merged",
    "enqueuing finds a dead claim, and ends it": "enqueue=send claim:a=held later:30 enqueue=send finish:a=stale",
    "a message that was used counts no more": "enqueue=send later:20 requeue=n claim:a=held later:30 enqueue=send",
    "nor does a wait": "delayed:50=merged claim:a=held later:30 enqueue=send",
    "delayed work waits, then it is requeued": "delayed:10=merged later:9 requeue= later:1 requeue=n requeue=",
    "a delay does not hold up a message on its way": "enqueue=send delayed:10=merged later:20 requeue=n",
    "ordinary work does not end a wait": "delayed:10=merged enqueue=merged later:9 requeue=",
    "work that ends a wait does": "delayed:10=merged wake=send",
    "waking and a message on its way": "enqueue=send wake=merged",
    "work whose wait is over is sent when it is enqueued, too": "delayed:10=merged later:10 enqueue=send",
    # -- claim --
    "a task by hand needs nothing enqueued": "claim:a=held finish:a=done",
    "one holder at a time": "enqueue=send claim:a=held claim:b=busy",
    "a doubled message finds the node busy, then nothing to lose": "enqueue=send claim:a=held "
    "claim:b=busy finish:a=done",
    "a dead holder's node can be claimed": "claim:a=held later:30 claim:b=held",
    "a claim ends a wait": "delayed:10=merged claim:a=held finish:a=done",
    # -- renew --
    "a renewed lease lives longer": "claim:a=held later:29 renew:a=held later:29 claim:b=busy",
    "a lease that ran out can't be renewed": "claim:a=held later:30 renew:a=lost",
    "another worker's lease can't be renewed": "claim:a=held later:30 claim:b=held renew:a=lost renew:b=held",
    # -- finish --
    "nothing new: gone": "enqueue=send claim:a=held finish:a=done enqueue=send",
    "work during the run: sent again": "enqueue=send claim:a=held enqueue=merged "
    "finish:a=send claim:b=held finish:b=done",
    "the run knows of more work": "enqueue=send claim:a=held finish:a:0=send enqueue=merged",
    "the run wants to wait": "enqueue=send claim:a=held finish:a:9=waiting later:8 requeue= later:1 requeue=n",
    "ordinary work during the run leaves the wait": "claim:a=held enqueue=merged finish:a:9=waiting enqueue=merged",
    "work that ends a wait during the run": "claim:a=held wake=merged finish:a:9=send",
    "waking belongs to one run": "claim:a=held wake=merged finish:a=send claim:a=held finish:a:9=waiting",
    "twice": "claim:a=held finish:a=done finish:a=stale",
    "after another took over": "claim:a=held later:30 claim:b=held finish:a=stale finish:b=done",
    "after it was requeued": "enqueue=send claim:a=held later:30 requeue=n finish:a=stale claim:b=held",
    "late, but no other worker noticed": "enqueue=send claim:a=held later:30 finish:a=done",
    # -- requeue --
    "nothing is overdue": "enqueue=send requeue=",
    "a lost message": "enqueue=send later:20 requeue=n requeue=",
    "back-off": "enqueue=send later:20 requeue=n later:39 requeue= "
    "later:1 requeue=n later:79 requeue= later:1 requeue=n",
    "a dead worker": "enqueue=send claim:a=held later:29 requeue= later:1 requeue=n",
    "a living worker": "enqueue=send claim:a=held later:25 renew:a=held later:25 requeue=",
    "a claim ends it": "enqueue=send later:20 requeue=n claim:a=held "
    "finish:a:1=waiting later:1 requeue=n later:20 requeue=n",
    "a message of finish counts": "claim:a=held finish:a:0=send later:20 requeue=n later:39 requeue= later:1 requeue=n",
    # -- remove --
    "a node that is gone": "enqueue=send remove later:99 requeue=",
    "a node that is gone while it runs": "claim:a=held remove finish:a=stale",
    "a node that comes back while it runs": "claim:a=held remove enqueue=send finish:a=stale claim:b=held",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(state: State, story: str) -> None:
    state.store_nodes(NODE)
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
        case "enqueue", []:
            return "send" if queue.enqueue(KIND, items) else "merged"
        case "wake", []:
            return "send" if queue.enqueue(KIND, items, ends_wait=True) else "merged"
        case "delayed", [seconds]:
            return "send" if queue.enqueue(KIND, items, delay_seconds=float(seconds)) else "merged"
        case "claim", [who]:
            claim = queue.claim(KIND, NODE)
            if claim is not None:
                claims[who] = claim
            return "busy" if claim is None else "held"
        case "renew", [who]:
            return "lost" if queue.renew([claims[who]]) else "held"
        case "finish", [who, *again]:
            return queue.finish(claims[who], again_after_seconds=float(again[0]) if again else None)
        case "requeue", []:
            return ",".join(queue.requeue_overdue(KIND, 10))
        case "remove", []:
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


def test_a_claim_says_which_revision_it_saw(state: State) -> None:
    state.queue.enqueue(KIND, [(NODE, Urgency.EMPTY)] * 3)
    assert state.claim().revision == 3


def test_a_repeated_claim_finds_its_own_token(state: State) -> None:
    keys = [state.keys.work(KIND, NODE), state.keys.pending(KIND), state.keys.fence, state.keys.generation_times]
    answers = [state.connection.run("claim", keys, [NODE, "token", 30_000]) for _ in range(2)]
    assert answers[0] == answers[1] is not None


def test_pending_follows_the_lease_and_requeuing_checks_both(state: State) -> None:
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


def test_urgent_nodes_are_requeued_first_and_no_more_than_asked(state: State) -> None:
    urgencies = [Urgency.CLEANUP, Urgency.RELEASE, Urgency.EMPTY, Urgency.DEFICIT]
    state.queue.enqueue(KIND, [(NodeName(u.name), u) for u in urgencies])
    state.later(20)
    assert state.queue.requeue_overdue(KIND, 2) == ["EMPTY", "DEFICIT"]
    assert state.queue.requeue_overdue(KIND, 9) == ["RELEASE", "CLEANUP"]


def test_the_highest_urgency_counts_until_the_work_is_done(state: State) -> None:
    other = NodeName("other")
    state.store_nodes(NODE, other)
    state.queue.enqueue(KIND, [(NODE, Urgency.EMPTY), (NODE, Urgency.CLEANUP), (other, Urgency.DEFICIT)])
    state.queue.finish(state.claim(NODE), again_after_seconds=0)
    state.later(20)
    assert state.queue.requeue_overdue(KIND, 1) == [NODE]


def test_many_nodes_and_many_claims_in_one_call(state: State) -> None:
    names = [NodeName(f"n{i}") for i in range(450)]
    assert state.queue.enqueue(KIND, [(name, Urgency.DEFICIT) for name in names]) == names
    claims = [state.claim(name) for name in names[:3]]
    state.queue.finish(claims[1])
    assert state.queue.renew(claims) == [claims[1]]


def test_each_node_is_requeued_once_however_many_callers_requeue(state: State) -> None:
    names = {NodeName(f"n{i}") for i in range(300)}
    state.queue.enqueue(KIND, [(name, Urgency.DEFICIT) for name in names])
    state.later(20)
    requeued: list[NodeName] = []
    threads = [
        threading.Thread(target=lambda: requeued.extend(state.queue.requeue_overdue(KIND, 100))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(requeued) == len(names)
    assert set(requeued) == names


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
    assert backlog.oldest_overdue_seconds == pytest.approx(25, abs=1)


def test_done_work_leaves_nothing_behind(state: State) -> None:
    state.queue.enqueue(KIND, [(NODE, Urgency.DEFICIT)])
    state.queue.finish(state.claim())
    state.queue.enqueue(WorkKind.PUBLISH, [(NODE, Urgency.DEFICIT)])
    state.queue.remove(NODE)
    assert state.left_over() == []
