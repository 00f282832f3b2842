"""The troubles that EC2 makes; see `troubles`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.sandbox.ec2.knobs import Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from chaos.ground import Ground

    Trouble = Callable[[Ground, Random], str]

EC2_TIMEOUT_SECONDS, SETTLE_SECONDS = 2.0, 1.0
# About as often as they are called, so that a fault seldom waits for its call.
MUTATIONS = (
    *("AssignPrivateIpAddresses",) * 4,
    *("CreateNetworkInterface",) * 3,
    *("AttachNetworkInterface",) * 3,
    *("ModifyNetworkInterfaceAttribute",) * 2,
    *("UnassignPrivateIpAddresses",) * 2,
    "DeleteNetworkInterface",
)
FAULTS = (("InternalError", 500), ("InternalFailure", 500), ("ServiceUnavailable", 503))
OVERLOADED = ("Unavailable", 503)  # says that nothing was done


def throttle(ground: Ground, rng: Random) -> str:
    action = rng.choice(("*", "Describe*", *MUTATIONS))
    # A read that is refused is made again after seconds, and a scripted fault waits for its call.
    times = rng.randint(1, 4) if action.endswith("*") else rng.randint(5, 25)
    ground.ec2.add_faults(Fault(action=action, code="RequestLimitExceeded", status=503, times=times))
    return f"{times} calls of {action} throttled"


def _failing(*, after: bool) -> Trouble:
    def fail(ground: Ground, rng: Random) -> str:
        action, times = rng.choice(MUTATIONS), rng.randint(1, 4)
        code, status = rng.choice(FAULTS if after else (*FAULTS, OVERLOADED))
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
    times, drop = rng.randint(1, 4), rng.random() < 0.3
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


def expire_credentials(ground: Ground, rng: Random) -> str:
    times = rng.randint(2, 6)
    ground.ec2.add_faults(Fault(action="*", code="RequestExpired", times=times))
    return f"{times} calls refused: the credentials are too old"


def stop_instance(ground: Ground, rng: Random) -> str:
    agent, seconds = rng.choice(list(ground.nodes.agents.values())), rng.uniform(1.0, 3.0)
    instance = agent.instance_id
    ground.ec2.stop_instance(instance)

    def start() -> None:
        if agent.name in ground.nodes.agents and ground.nodes.agents[agent.name].instance_id == instance:
            ground.ec2.start_instance(instance)

    ground.later(seconds, start)
    return f"{instance} of {agent.name} stopped for {seconds:.1f} s"


PASSING: dict[str, Trouble] = {
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
}
LASTING: dict[str, Trouble] = {
    "subnet exhausted": exhaust_subnet,
    "quota reached": reach_quota,
    "permission lost": lose_permission,
    "credentials expired": expire_credentials,
    "instance stopped": stop_instance,
}
