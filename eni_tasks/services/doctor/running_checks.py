"""Our own processes and what they keep: whether each queue has a worker, work moves, a watcher ticks, the clocks agree.

Also whether two nodes claim one instance, and whether EC2 knows the instance of each node.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from eni_tasks.domain.cilium_node import creation_seconds, parse_node
from eni_tasks.domain.words import counted
from eni_tasks.errors import InvalidInput, StateUnavailable
from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.model.node import Node
from eni_tasks.model.state import Facts
from eni_tasks.ports.doctor import Workers
from eni_tasks.services.doctor.findings import Area, Finding
from eni_tasks.state import State
from eni_tasks.state.server import ServerDescription
from eni_tasks.state.summary import StateSummary

LATE_SECONDS = 60.0  # overdue work is requeued within seconds: longer means that no worker serves it
# AWS refuses a signature that is 5 minutes off; Kubernetes' tokens and the order of logs suffer before.
CLOCK_NOTE_SECONDS, CLOCK_TROUBLE_SECONDS = 5.0, 120.0
STALE_PERIODS = 3
LATE_TICK_SECONDS = 10.0  # watchers tick once a second
NAMES_SHOWN = 10
YOUNG_SECONDS = 30.0  # EC2 may not list the interfaces of a new instance yet


def examine_workers(workers: Workers, queues: Sequence[str], summary: StateSummary) -> list[Finding]:
    """See who serves which queue, and whether work moves.

    Args:
        workers: those who can be asked.
        queues: the queues that must be served.
        summary: the work.
    """
    area = Area("queues")
    try:
        answers = workers.queues()
    except StateUnavailable as error:
        area.trouble("workers", str(error), "See the findings about Redis.")
        return area.findings
    for queue in queues:
        serving = sorted(worker for worker, served in answers.items() if queue in served)
        waiting = summary.queues.get(queue, 0)
        if serving:
            area.ok(queue, f"{counted(len(serving), 'worker')} ({', '.join(serving)}); messages that wait: {waiting}.")
        else:
            area.trouble(
                queue,
                f"No worker of this queue answered; messages that wait: {waiting}.",
                f"Start `eni-tasks worker --queue {queue}`, or scale its Deployment up.",
            )
    for kind, work in summary.work.items():
        if work.overdue_count and work.oldest_overdue_seconds > LATE_SECONDS:
            area.trouble(
                f"{kind} work",
                f"Waiting for too long: {work.overdue_count}, the first for {work.oldest_overdue_seconds:.0f} s.",
                "See that watchers and workers run; if they do, add workers to that queue.",
            )
        else:
            area.ok(f"{kind} work", f"{work.pending_count} pending, none late.")
    return area.findings


def examine_watcher(summary: StateSummary, server: ServerDescription, resync_seconds: float) -> list[Finding]:
    """See whether a watcher ticks, and whether what it starts gets done.

    Args:
        summary: the shared state.
        server: the Redis server's description of itself.
        resync_seconds: the period of the read of everything.
    """
    area = Area("watcher")
    start = "Start `eni-tasks watcher`; it must have the same ENI_TASKS_CLUSTER as the workers."
    if summary.generation is None:
        area.trouble("ticks", "No watcher has ticked since Redis lost its data.", start)
        return area.findings
    if server.resync_slot_seconds is not None:
        since = max(0.0, resync_seconds - server.resync_slot_seconds)
    else:
        # The slot has just run out, or long ago: the last read tells which.
        since = summary.now - (summary.inventory_at or 0.0)
    if since > resync_seconds + LATE_TICK_SECONDS:
        area.trouble("ticks", f"No watcher has started the periodic read within {resync_seconds:g} s.", start)
    else:
        area.ok("ticks", f"The periodic read was started {since:.0f} s ago.")
    resync = "See the log of the workers of queue resync for `read_failed`."
    if summary.infrastructure_at is None:
        area.note("reads", "EC2 was never read completely (or no node names a VPC).", resync)
    elif (read_age := summary.now - summary.infrastructure_at) > STALE_PERIODS * resync_seconds:
        area.trouble("reads", f"The last complete read of EC2 began {read_age:.0f} s ago.", resync)
    else:
        area.ok("reads", f"EC2 was read {read_age:.0f} s ago.")
    return area.findings


def examine_switches(summary: StateSummary) -> list[Finding]:
    """See whether something is stopped for all workers.

    Args:
        summary: the shared state.
    """
    area = Area("mutations")
    if summary.pause is not None:
        area.note(
            "pause",
            f"Paused by {summary.pause.who}: {summary.pause.why.rstrip('.')}.",
            "`eni-tasks resume` when it is over.",
        )
    for action, breaker in summary.breakers.items():
        advice = "Remove the cause, then `eni-tasks resume`; without that, one caller a minute tries again."
        area.trouble(action, f"Stopped for all workers: {breaker.why.rstrip('.')}.", advice)
    if not area.findings:
        area.ok("switches", "Nothing is stopped.")
    return area.findings


def examine_instances(contested: Mapping[InstanceId, Sequence[NodeName]]) -> list[Finding]:
    """See whether nodes claim an instance of another node.

    Args:
        contested: instances that several nodes name, with these nodes, the owner first.
    """
    area = Area("instances")
    for instance, (owner, *others) in contested.items():
        area.trouble(
            instance,
            f"It belongs to {owner}, which has named it for longest. Nothing is done for the others that name it: "
            f"{', '.join(others)}.",
            "Compare spec.instance-id of these CiliumNodes with the providerID of their Nodes; correct or delete the "
            "wrong object.",
        )
    if not contested:
        area.ok("owners", "No instance is named by two nodes.")
    return area.findings


def examine_clocks(redis_now: float, redis_asked_at: float, cluster_now: float | None) -> list[Finding]:
    """Compare our clock with those of others.

    Args:
        redis_now: Redis' clock.
        redis_asked_at: ours at that moment.
        cluster_now: the API server's, cut to whole seconds, just now.
    """
    area = Area("clock")
    _compare(area, "Redis", redis_now - redis_asked_at)
    if cluster_now is not None:
        # Cut to whole seconds: in the middle of that second on average.
        _compare(area, "the API server", cluster_now + 0.5 - time.time())
    return area.findings


def _compare(area: Area, whose: str, ahead_seconds: float) -> None:
    what = f"against {whose}"
    if abs(ahead_seconds) <= CLOCK_NOTE_SECONDS:
        area.ok(what, f"Within {CLOCK_NOTE_SECONDS:g} s of ours.")
        return
    side = "ahead of" if ahead_seconds > 0 else "behind"
    message = f"The clock of {whose} is {abs(ahead_seconds):.0f} s {side} ours."
    advice = "Set the clocks by NTP: AWS refuses what is signed 5 minutes off."
    if abs(ahead_seconds) > CLOCK_TROUBLE_SECONDS:
        area.trouble(what, message, advice)
    else:
        area.note(what, message, advice)


def examine_nodes(state: State, inventory_at: float | None, *, by_instance_tags: bool) -> list[Finding]:
    """Find nodes whose instance EC2 does not show, although everything was read since they exist.

    Args:
        state: the stored objects and the facts.
        inventory_at: when the last complete read of all instances began, in Redis seconds; None before the first.
        by_instance_tags: whether instances that lack some tags are not read on purpose.
    """
    area = Area("instances")
    if inventory_at is None:
        return area.findings  # the findings about reads say so
    nodes = {node.instance_id: node for node in _older_nodes(state, inventory_at)}
    facts = state.facts.get(list(nodes))
    hidden = sorted(f"{node.name} ({instance})" for instance, node in nodes.items() if not _shown(facts.get(instance)))
    if not hidden:
        area.ok("known to EC2", "No instance is missing in EC2's reads.")
        return area.findings
    names = ", ".join(hidden[:NAMES_SHOWN]) + (", …" if len(hidden) > NAMES_SHOWN else "")
    message = f"EC2 shows no interface of the instance of {counted(len(hidden), 'node')}: {names}. They get nothing."
    advice = (
        "See whether these instances exist in our region (AWS_REGION) and account. If one does not, delete its "
        "CiliumNode; if its id is wrong, correct `spec.instance-id`."
    )
    if by_instance_tags:
        area.note("known to EC2", message, f"Nothing, if they lack the tags of ENI_TASKS_INSTANCE_TAGS. {advice}")
    else:
        area.trouble("known to EC2", message, advice)
    return area.findings


def _older_nodes(state: State, inventory_at: float) -> Iterator[Node]:
    """Nodes with an instance, that are read and existed when the last complete read began."""
    for obj in state.nodes.all_objects():
        try:
            node = parse_node(obj)
        except InvalidInput:
            continue  # `status` reports it
        if node.instance_id and not node.ignored and creation_seconds(obj) + YOUNG_SECONDS < inventory_at:
            yield node


def _shown(facts: Facts | None) -> bool:
    """Whether EC2 showed interfaces, as far as the facts are certain."""
    return facts is not None and (bool(facts.interfaces) or not facts.known)
