"""The troubles: each does one thing to the ground and says what, in words.

`LASTING` ones are those that the system rightly remembers for a minute or two (a subnet that is cooling down, an open
breaker, a stopped instance); they come early in a run, so that the wait for them is no failure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chaos import ec2_troubles
from chaos.ground import pick
from chaos.raw_messages import raw_message
from eni_tasks.sandbox.kube.knobs import Fault as KubeFault

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from chaos.ground import Ground

    Trouble = Callable[[Ground, Random], str]

LEASE_SECONDS = 7.0
QUEUES = ("ec2", "apiserver", "resync")


# -- processes -------------------------------------------------------------------------------------
def _killed(*modules: str) -> Trouble:
    def kill(ground: Ground, rng: Random) -> str:
        name = pick(rng, ground.free(*modules))
        if name:
            ground.kill(name, rng.uniform(0.0, 2.0))
        return f"SIGKILL {name or 'nothing: all are down'}"

    return kill


def kill_all_of_a_kind(ground: Ground, rng: Random) -> str:
    module = rng.choice(("watcher", "ec2"))
    for name in ground.free(module):
        ground.kill(name, rng.uniform(0.0, 3.0))
    return f"SIGKILL every {module}"


def freeze(ground: Ground, rng: Random) -> str:
    name = pick(rng, ground.free("ec2", "ec2", "apiserver", "resync", "watcher"))
    seconds = _frozen_seconds(rng)
    if name:
        ground.freeze(name, seconds)
    return f"SIGSTOP {name or 'nothing: all are down'} for {seconds:.1f} s"


def _frozen_seconds(rng: Random) -> float:
    """Mostly a bit longer than a lease; now and then so long that everything that waits has run out."""
    return rng.uniform(60.0, 75.0) if rng.random() < 0.2 else LEASE_SECONDS + rng.uniform(-2.0, 5.0)


def _frozen_at(server: str, what: str, request: bytes) -> Trouble:
    def freeze_there(ground: Ground, rng: Random) -> str:
        seconds = _frozen_seconds(rng)
        ground.freeze_at(server, re.compile(request, re.DOTALL), what, seconds)
        return f"what sends {what} next is to be stopped for {seconds:.1f} s before it has the answer"

    return freeze_there


def roll_out(ground: Ground, rng: Random) -> str:
    name = pick(rng, ground.free("ec2", "apiserver", "resync", "watcher"))
    if name:
        ground.end(name)
    return f"SIGTERM {name or 'nothing: all are down'}"


# -- Redis -----------------------------------------------------------------------------------------
def empty_redis(ground: Ground, rng: Random) -> str:
    if rng.random() < 0.5:
        ground.redis.flushall()
        return "FLUSHALL"
    seconds = rng.uniform(0.0, 3.0)
    ground.kill(ground.pair.serving, seconds)
    return f"Redis killed, back empty after {seconds:.1f} s"


def take_redis_back(ground: Ground, rng: Random) -> str:
    seconds, away = rng.choice((rng.uniform(2.0, 8.0), rng.uniform(8.0, 45.0))), rng.uniform(0.0, 3.0)
    ground.restore_redis(seconds, away)
    return f"Redis is to be killed in {seconds:.1f} s, and to start on its data of now {away:.1f} s later"


def _replica_promoted(*, cut: bool) -> Trouble:
    def promote(ground: Ground, rng: Random) -> str:
        seconds = rng.uniform(1.0, 15.0)
        ground.promote_replica(seconds, cut=cut)
        return f"a replica of Redis is to be promoted in {seconds:.1f} s with the data of now"

    return promote


def cut_redis_connections(ground: Ground, _: Random) -> str:
    cut = sum(int(ground.redis.execute_command("CLIENT", "KILL", "TYPE", kind)) for kind in ("normal", "pubsub"))
    return f"{cut} connections to Redis cut"


def pause_redis(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(1.0, 6.5)
    ground.redis.execute_command("CLIENT", "PAUSE", round(seconds * 1000), "ALL")
    return f"Redis does not answer for {seconds:.1f} s"


def send_raw_messages(ground: Ground, rng: Random) -> str:
    queue, count = rng.choice(QUEUES), rng.randint(1, 4)
    for _ in range(count):
        ground.redis.lpush(ground.queue_key(queue), raw_message(rng, queue))
    return f"{count} messages in the queue {queue} that no sender of ours writes"


# -- API server ------------------------------------------------------------------------------------
def restart_kube(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(0.0, 3.0)
    ground.kill("kubernetes-api", seconds)
    return f"API server killed, back after {seconds:.1f} s"


def take_kube_back(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(3.0, 20.0)
    ground.restore_kube(seconds)
    return f"etcd is to be restored to its state of now in {seconds:.1f} s"


def cut_watches(ground: Ground, _: Random) -> str:
    ground.kube.break_watches()
    return "all watches cut"


def silence_watches(ground: Ground, _: Random) -> str:
    ground.kube.silence_watches()
    return "all watches half-open"


def compact(ground: Ground, _: Random) -> str:
    ground.kube.compact()
    ground.kube.break_watches()
    return "history compacted, watches cut"


def refuse_writes(ground: Ground, rng: Random) -> str:
    code, times = rng.choice((409, 429, 500, 503, 0)), rng.randint(2, 10)
    ground.kube.fault(
        KubeFault(verb="patch", code=code, times_count=times, retry_after_seconds=1 if code == 429 else None)
    )
    return f"{times} writes of objects refused with {code or 'a closed connection'}"


def lose_write_answers(ground: Ground, rng: Random) -> str:
    code, times = rng.choice((500, 504, 0)), rng.randint(2, 8)
    ground.kube.fault(KubeFault(verb="patch", code=code, times_count=times, after_effect=True))
    return f"{times} writes of objects done and answered with {code or 'a closed connection'}"


def refuse_lists(ground: Ground, rng: Random) -> str:
    verb, code, times = rng.choice(("list", "watch")), rng.choice((500, 503, 410, 0)), rng.randint(1, 5)
    ground.kube.fault(KubeFault(verb=verb, code=code, times_count=times))
    return f"{times} {verb} requests refused with {code or 'a closed connection'}"


# -- nodes -----------------------------------------------------------------------------------------
def double_instance(ground: Ground, rng: Random) -> str:
    agent, seconds = rng.choice(list(ground.nodes.agents.values())), rng.uniform(3.0, 15.0)
    name = ground.nodes.add_impostor(agent)

    instance_id = agent.instance_id

    def remove() -> None:
        alone = all(each.instance_id != instance_id for each in ground.nodes.agents.values())
        said = ", and its object says so" if ground.nodes.remove_impostor(name) else ""
        ground.happened["instance doubled until its node was gone" if alone else f"instance doubled{said}"] += 1

    ground.later(seconds, remove)
    return f"{name} names {instance_id} of {agent.name}, for {seconds:.1f} s"


def replace_node(ground: Ground, rng: Random) -> str:
    name = rng.choice(list(ground.nodes.agents))
    return f"{name} deleted and created again with instance {ground.nodes.replace(name)}"


def replace_node_in_place(ground: Ground, rng: Random) -> str:
    name = rng.choice(list(ground.nodes.agents))
    return f"{name} is another machine under the same object: {ground.nodes.replace_in_place(name)}"


def exchange_node(ground: Ground, rng: Random) -> str:
    name = rng.choice(list(ground.nodes.agents))
    return f"{name} removed, {ground.nodes.exchange(name)} added"


PASSING: dict[str, Trouble] = {
    "ec2 worker killed": _killed("ec2"),
    "watcher killed": _killed("watcher"),
    "apiserver or resync worker killed": _killed("apiserver", "resync"),
    "all of a kind killed": kill_all_of_a_kind,
    "process frozen": freeze,
    "process asked to end": roll_out,
    "frozen between permission and call": _frozen_at(
        "Redis", "a request for permission", rb"EVALSHA.+:bucket:(Assign|Create|Attach)"
    ),
    "frozen between status and spec": _frozen_at("API server", "a write of a status", rb"PATCH \S+/status"),
    "frozen in a write of spec": _frozen_at("API server", "a write of a spec", rb"PATCH \S+ciliumnodes/[^/ ]+ "),
    "frozen in a call": _frozen_at("EC2", "a mutation", rb"Action=(Assign|Create|Attach)"),
    "frozen in a read": _frozen_at("EC2", "a read", rb"Action=DescribeNetworkInterfaces"),
    "frozen while it records": _frozen_at("Redis", "what it recorded", rb"XADD.+:events\r\n"),
    "Redis emptied": empty_redis,
    "Redis back in time": take_redis_back,
    "Redis replica promoted": _replica_promoted(cut=True),
    "Redis connections cut": cut_redis_connections,
    "Redis paused": pause_redis,
    "API server restarted": restart_kube,
    "etcd restored": take_kube_back,
    "watches cut": cut_watches,
    "watches half-open": silence_watches,
    "history compacted": compact,
    "API writes refused": refuse_writes,
    "API answers lost": lose_write_answers,
    "API lists refused": refuse_lists,
    **ec2_troubles.PASSING,
    "node replaced": replace_node,
    "node replaced in place": replace_node_in_place,
    "node exchanged": exchange_node,
    "instance doubled": double_instance,
    "raw messages": send_raw_messages,
    "Redis replica promoted, connections stay": _replica_promoted(cut=False),
}
LASTING: dict[str, Trouble] = ec2_troubles.LASTING
