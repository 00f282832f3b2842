"""What must be so when calm has returned, named where it isn't yet; and what must never have been.

Judged from EC2's own records and the objects at the API server; what our system believes is only asked
for the reason.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import redis
from pydantic import SecretStr

from chaos import history
from chaos.agents import PRE_ALLOCATE, addresses_of
from eni_tasks.bootstrap import Services
from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.prefixes import SIZE
from eni_tasks.errors import EniTasksError
from eni_tasks.model.network import NodeName
from eni_tasks.model.work import Pass, WorkKind
from eni_tasks.sandbox.running import CLUSTER
from eni_tasks.settings import Settings
from eni_tasks.state.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos.agents import Agent
    from chaos.ground import Ground
    from eni_tasks.sandbox.ec2.records import Interface

GRACE_SECONDS = 60.0
COMMAND_SECONDS = 60.0
OURS = {"io.cilium/cluster-name": CLUSTER}


class _Silence:
    """Sends nothing: these services only look."""

    def send(self, kind: WorkKind, name: NodeName) -> None:
        raise AssertionError(f"a verdict only reads, but sent {kind} of {name}")


class Verdict:
    """Looks at one run.

    Args:
        ground: the system, and what it should have become.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        url = SecretStr(ground.pair.url)
        self._services = Services(Settings(cluster=CLUSTER, redis_url=url), _Silence())
        self._keys = Keys(CLUSTER)

    def close(self) -> None:
        self._services.state.connection.client.close()

    def missing(self) -> list[str]:
        """What isn't as it should be yet; empty when all has converged."""
        nodes = self._ground.nodes
        unreported = [agent.name for agent in list(nodes.agents.values()) if not nodes.report(agent)]
        objects = nodes.objects()
        attached: dict[str, list[Interface]] = defaultdict(list)
        for interface in self._ground.ec2.view().interfaces:
            attached[interface.instance_id].append(interface)
        found = [f"{name}: its agent could not report" for name in unreported]
        for agent in nodes.agents.values():
            faults = list(_node_faults(agent, objects.get(agent.name, {}), attached[agent.instance_id]))
            reason = self._reason(agent.name) if faults else ""
            found += [f"{agent.name} ({agent.instance_id}): {fault}; {reason}" for fault in faults]
        return [*found, *self._ground.deaf(), *self._unrest()]

    def _reason(self, name: str) -> str:
        try:
            status = self._services.status.node(NodeName(name)).status
        except EniTasksError as error:
            return str(error)
        words = [f"{status.reason}: {' '.join(status.explanation)}"]
        words += [f"trouble: {status.trouble}"] if status.trouble else []
        return "; ".join([*words, f"last: {status.last_action}"])

    def _unrest(self) -> Iterator[str]:
        state, keys = self._ground.redis, self._keys
        try:
            for kind in WorkKind:
                for name in state.zrange(keys.pending(kind), 0, -1):
                    if name.decode() == Pass.ORPHANS:
                        continue  # the collector waits for its grace
                    yield f"{kind} of {name.decode()} is pending: {state.hgetall(keys.work(kind, name.decode()))}"
            for what, key in {"journal": keys.journal, "ledger": keys.ledger}.items():
                for name, entry in state.hgetall(key).items():
                    yield f"{what} still has {name.decode()}: {entry.decode()[:300]}"
        except redis.RedisError as error:
            yield f"Redis does not answer: {error}"

    def leftovers(self) -> list[str]:
        """Our interfaces that are attached to no instance."""
        return [f"{each.id} in {each.subnet_id} is left over" for each in self._ground.ec2.leftovers(**OURS)]

    def let_grace_pass(self) -> None:
        """Age what the orphan collector has seen, instead of waiting for its grace."""
        state, key = self._ground.redis, self._keys.orphans
        aged = {name: seen_at - GRACE_SECONDS * 1000 for name, seen_at in state.zrange(key, 0, -1, withscores=True)}
        if aged:
            state.zadd(key, aged)

    def begin_calm(self) -> None:
        """Count from now on what `needless` tells of."""
        self._ground.ec2.reset_calls()
        self._ground.kube.reset_record()

    def needless(self) -> list[str]:
        """What was changed since `begin_calm`, although everything was right and nothing happened."""
        calls = {
            action: codes for action, codes in self._ground.ec2.counts().items() if not action.startswith("Describe")
        }
        writes = {verb: count for verb, count in self._ground.kube.record().counts.items() if verb.startswith("patch")}
        return [f"in calm, there were calls and writes: {calls or ''} {writes or ''}"] if calls or writes else []

    def commands(self) -> list[str]:
        """What `status` and `doctor` still complain of."""
        begun = {command: self._begin(command) for command in ("status", "doctor")}
        found = []
        for command, process in begun.items():
            with process:
                output, _ = process.communicate(timeout=COMMAND_SECONDS)
            if process.returncode:
                found.append(f"eni-tasks {command} ends with {process.returncode}:\n{output}")
        return found

    def _begin(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "eni_tasks.cli", command],
            env=self._ground.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _elastic_ips(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for interface in self._ground.ec2.view().interfaces:
            found[interface.instance_id] += [each.public_ip for each in interface.associations]
        return found

    def violations(self) -> list[str]:
        """What should never have been."""
        nodes = self._ground.nodes
        nodes.note_interfaces()
        found = self._ground.ec2.violations()
        found += history.faults(self._ground.sandbox.folder / "objects", nodes.machine_of, nodes.uses)
        found += [f"{count} {what} ended by itself" for what, count in self._ground.ended.items()]
        mismatches = self._ground.ec2.counts().get("CreateNetworkInterface", {}).get("IdempotentParameterMismatch", 0)
        if mismatches:
            found.append(f"a client token came with other parameters {mismatches} times")
        by_instance: dict[str, int] = defaultdict(int)
        with_prefixes: set[str] = set()
        for interface in self._ground.ec2.view().interfaces:
            by_instance[interface.instance_id] += len(addresses_of(interface))
            with_prefixes |= {interface.instance_id} if interface.prefixes else set()
        for instance, addresses in self._elastic_ips().items():
            if len(addresses) > 1:
                found.append(f"{instance} has several Elastic IPs: {', '.join(addresses)}")
        for agent in nodes.agents.values():
            have, most = by_instance[agent.instance_id], agent.most + PRE_ALLOCATE
            most += SIZE - 1 if agent.instance_id in with_prefixes else 0  # a need is rounded up to whole prefixes
            if have > most:
                found.append(
                    f"{agent.name} ({agent.instance_id}) has {have} addresses, and {most} were ever wanted: "
                    "a need was served twice"
                )
        return found


def _could_go(agent: Agent, interfaces: list[Interface], excess: int) -> bool:
    """Whether a single address of the excess is free, or a whole prefix."""
    if any(address not in agent.used for each in interfaces for address in each.addresses):
        return True
    prefixes = (prefix for each in interfaces for prefix in each.prefixes)
    return excess >= SIZE and any(agent.used.isdisjoint(expanded(prefix)) for prefix in prefixes)


def _node_faults(agent: Agent, obj: dict[str, Any], interfaces: list[Interface]) -> Iterator[str]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    pool = {address: entry.get("resource") for address, entry in spec.get("ipam", {}).get("pool", {}).items()}
    truth = {address: interface.id for interface in interfaces for address in addresses_of(interface)}
    if pool != truth:
        wrong = sum(truth.get(address) != resource for address, resource in pool.items())
        yield f"its object shows {len(pool)} addresses ({wrong} of them wrong) of {len(truth)}"
    if set(status.get("eni", {}).get("enis", {})) != {interface.id for interface in interfaces}:
        yield f"its status shows other interfaces than the {len(interfaces)} it has"
    free = len(truth.keys() - agent.used)
    if free < PRE_ALLOCATE:
        yield f"{free} free addresses with {len(agent.used)} in use"
    static = [each.public_ip for interface in interfaces for each in interface.associations]
    wanted = 1 if "static-ip-tags" in agent.spec["ipam"] else 0
    shown_static = status.get("ipam", {}).get("assigned-static-ip")
    if len(static) != wanted or [*filter(None, [shown_static])] != static:
        yield f"it has {static or 'no Elastic IP'} and shows {shown_static}; it asks for {wanted}"
    if (excess := free - PRE_ALLOCATE) > 0 and _could_go(agent, interfaces, excess):
        yield f"{excess} addresses are in excess, {len(agent.used)} in use"
    if marks := status.get("ipam", {}).get("release-ips"):
        yield f"its status still shows what became of {len(marks)} addresses in excess"
    unmarked = [
        each.id
        for each in interfaces
        if OURS.items() <= each.tags.items() and each.attachment and not each.attachment.delete_on_termination
    ]
    if unmarked:
        yield f"{', '.join(unmarked)} would outlive the instance"
