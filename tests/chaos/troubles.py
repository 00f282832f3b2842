"""The troubles: each does one thing to the ground and says what, in words.

`LASTING` ones are those that the system rightly remembers for a minute or two (a benched subnet, an open
breaker, a stopped instance); they come early in a run, so that the wait for them is no failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chaos.ground import pick
from eni_tasks.sandbox.ec2.knobs import Fault
from eni_tasks.sandbox.kube.knobs import Fault as KubeFault

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from chaos.ground import Ground

    Trouble = Callable[[Ground, Random], str]

LEASE_SECONDS, EC2_TIMEOUT_SECONDS, SETTLE_SECONDS = 7.0, 2.0, 1.0
# About as often as they are called, so that a fault seldom waits for its call.
MUTATIONS = (
    *("AssignPrivateIpAddresses",) * 4,
    *("CreateNetworkInterface",) * 3,
    *("AttachNetworkInterface",) * 3,
    *("ModifyNetworkInterfaceAttribute",) * 2,
    "DeleteNetworkInterface",
)
FIVE_HUNDREDS = (("InternalError", 500), ("ServiceUnavailable", 503), ("Unavailable", 503), ("InternalFailure", 500))


# -- processes -------------------------------------------------------------------------------------
def _killed(*modules: str) -> Trouble:
    def kill(ground: Ground, rng: Random) -> str:
        name = pick(rng, ground.free(*modules))
        if name:
            ground.kill(name, rng.uniform(0.0, 2.0))
        return f"SIGKILL {name or 'nobody: all are down'}"

    return kill


def kill_all_of_a_kind(ground: Ground, rng: Random) -> str:
    module = rng.choice(("watcher", "ec2"))
    for name in ground.free(module):
        ground.kill(name, rng.uniform(0.0, 3.0))
    return f"SIGKILL every {module}"


def freeze(ground: Ground, rng: Random) -> str:
    name = pick(rng, ground.free("ec2", "ec2", "apiserver", "watcher"))
    seconds = LEASE_SECONDS + rng.uniform(0.5, 3.0)
    if name:
        ground.freeze(name, seconds)
    return f"SIGSTOP {name or 'nobody: all are down'} for {seconds:.1f} s, longer than its lease"


def roll_out(ground: Ground, rng: Random) -> str:
    name = pick(rng, ground.free("ec2", "apiserver", "resync", "watcher"))
    if name:
        ground.end(name)
    return f"SIGTERM {name or 'nobody: all are down'}"


# -- Redis -----------------------------------------------------------------------------------------
def empty_redis(ground: Ground, rng: Random) -> str:
    if rng.random() < 0.5:
        ground.redis.flushall()
        return "FLUSHALL"
    seconds = rng.uniform(0.0, 3.0)
    ground.kill("redis", seconds)
    return f"Redis killed, back empty after {seconds:.1f} s"


def cut_redis_connections(ground: Ground, _: Random) -> str:
    cut = sum(int(ground.redis.execute_command("CLIENT", "KILL", "TYPE", kind)) for kind in ("normal", "pubsub"))
    return f"{cut} connections to Redis cut"


def pause_redis(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(1.0, 6.5)
    ground.redis.execute_command("CLIENT", "PAUSE", round(seconds * 1000), "ALL")
    return f"Redis answers nobody for {seconds:.1f} s"


# -- API server ------------------------------------------------------------------------------------
def restart_kube(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(0.0, 3.0)
    ground.kill("kubernetes-api", seconds)
    return f"API server killed, back after {seconds:.1f} s"


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


# -- EC2 -------------------------------------------------------------------------------------------
def throttle(ground: Ground, rng: Random) -> str:
    action, times = rng.choice(("*", "Describe*", *MUTATIONS)), rng.randint(5, 25)
    ground.ec2.add_faults(Fault(action=action, code="RequestLimitExceeded", status=503, times=times))
    return f"{times} calls of {action} throttled"


def _failing(*, after: bool) -> Trouble:
    def fail(ground: Ground, rng: Random) -> str:
        action, (code, status), times = (
            rng.choice(MUTATIONS),
            rng.choice(FIVE_HUNDREDS[:: 3 if after else 1]),
            rng.randint(1, 4),
        )
        ground.ec2.add_faults(Fault(action=action, code=code, status=status, times=times, after=after))
        return f"{times} {action} answered {code} {'after' if after else 'before'} the effect"

    return fail


def _dropping(*, after: bool) -> Trouble:
    def drop(ground: Ground, rng: Random) -> str:
        action, times = rng.choice(MUTATIONS), rng.randint(1, 4)
        ground.ec2.add_faults(Fault(action=action, drop=True, times=times, after=after))
        return f"the answers of {times} {action} dropped {'after' if after else 'before'} the effect"

    return drop


def answer_late(ground: Ground, rng: Random) -> str:
    action, times = rng.choice(MUTATIONS), rng.randint(1, 3)
    ground.ec2.add_faults(Fault(action=action, delay_seconds=EC2_TIMEOUT_SECONDS + 1, times=times))
    return f"{times} {action} carried out and answered too late"


def fail_reads(ground: Ground, rng: Random) -> str:
    times, drop = rng.randint(2, 8), rng.random() < 0.3
    ground.ec2.add_faults(Fault(action="Describe*", code="InternalError", status=500, drop=drop, times=times))
    return f"{times} reads {'dropped' if drop else 'failed'}"


def read_late(ground: Ground, rng: Random) -> str:
    seconds, lag = rng.uniform(3.0, 6.0), rng.uniform(0.3, 0.9) * SETTLE_SECONDS
    ground.turn_ec2(seconds, read_lag_seconds=lag)
    return f"reads lag {lag:.1f} s behind for {seconds:.1f} s"


def know_new_ids_late(ground: Ground, rng: Random) -> str:
    seconds, lag = rng.uniform(2.0, 5.0), rng.uniform(0.3, 1.5)
    ground.turn_ec2(seconds, new_id_lag_seconds=lag)
    return f"new ids are unknown for {lag:.1f} s, for {seconds:.1f} s"


def hide_interfaces(ground: Ground, rng: Random) -> str:
    attached = [each.id for each in ground.ec2.view().interfaces if each.attachment]
    hidden = tuple(rng.sample(attached, min(4, len(attached))))
    ground.ec2.add_faults(Fault(action="DescribeNetworkInterfaces", hides=hidden, times=1))
    return f"one read does not show {', '.join(hidden)}"


def attach_slowly(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(3.0, 6.0)
    ground.turn_ec2(seconds, attach_seconds=1.5, detach_seconds=1.0)
    return f"attaching takes 1.5 s for {seconds:.1f} s"


def refuse_attaches(ground: Ground, rng: Random) -> str:
    code, times = (
        rng.choice(("InvalidParameterCombination", "UnsupportedOperation", "IncorrectState")),
        rng.randint(1, 4),
    )
    ground.ec2.add_faults(Fault(action="AttachNetworkInterface", code=code, times=times))
    return f"{times} attaches refused with {code}"


def exhaust_subnet(ground: Ground, rng: Random) -> str:
    world, seconds = ground.sandbox.fleet._world, rng.uniform(2.0, 5.0)
    subnet = rng.choice([*world["node_subnets"].values(), *world["pod_subnets"].values()])
    ground.turn_ec2(seconds, exhausted_subnets=[subnet])
    return f"{subnet} is exhausted for {seconds:.1f} s"


def reach_quota(ground: Ground, rng: Random) -> str:
    seconds = rng.uniform(2.0, 5.0)
    ground.turn_ec2(seconds, interface_quota=0)
    return f"the account's quota of interfaces is reached for {seconds:.1f} s"


def lose_permission(ground: Ground, rng: Random) -> str:
    action, seconds = (
        rng.choice(("Describe*", "AssignPrivateIpAddresses", "AttachNetworkInterface")),
        rng.uniform(1.0, 3.0),
    )
    ground.turn_ec2(seconds, denied_actions=[action])
    return f"{action} not permitted for {seconds:.1f} s"


def stop_instance(ground: Ground, rng: Random) -> str:
    agent, seconds = rng.choice(list(ground.nodes.agents.values())), rng.uniform(1.0, 3.0)
    instance = agent.instance_id
    ground.ec2.stop_instance(instance)

    def start() -> None:
        if agent.name in ground.nodes.agents and ground.nodes.agents[agent.name].instance_id == instance:
            ground.ec2.start_instance(instance)

    ground.later(seconds, start)
    return f"{instance} of {agent.name} stopped for {seconds:.1f} s"


# -- nodes -----------------------------------------------------------------------------------------
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
    "Redis emptied": empty_redis,
    "Redis connections cut": cut_redis_connections,
    "Redis paused": pause_redis,
    "API server restarted": restart_kube,
    "watches cut": cut_watches,
    "watches half-open": silence_watches,
    "history compacted": compact,
    "API writes refused": refuse_writes,
    "API answers lost": lose_write_answers,
    "API lists refused": refuse_lists,
    "EC2 throttles": throttle,
    "EC2 5xx before effect": _failing(after=False),
    "EC2 5xx after effect": _failing(after=True),
    "EC2 drops before effect": _dropping(after=False),
    "EC2 drops after effect": _dropping(after=True),
    "EC2 answers late": answer_late,
    "EC2 reads fail": fail_reads,
    "EC2 reads stale": read_late,
    "EC2 ids known late": know_new_ids_late,
    "EC2 hides interfaces": hide_interfaces,
    "EC2 attaches slowly": attach_slowly,
    "EC2 refuses attaches": refuse_attaches,
    "node replaced": replace_node,
    "node replaced in place": replace_node_in_place,
    "node exchanged": exchange_node,
}
LASTING: dict[str, Trouble] = {
    "subnet exhausted": exhaust_subnet,
    "quota reached": reach_quota,
    "permission lost": lose_permission,
    "instance stopped": stop_instance,
}
