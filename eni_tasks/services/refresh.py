"""Facts from EC2: everything periodically, requested instances as they come, 200 in a call.

Interfaces are read by the instances of known nodes, never by listing the account: interfaces of others are never
read, a subnet filter can't hide a node's first interface, and the cost follows the fleet. Each portion is merged,
compared and acted upon before the next is read, nodes in deficit first.

An interface or address that a read lacks may only be late: EC2's reads lag. What was known stays known until the loss
is proven (`eni_tasks.domain.lacking`), and mutations continue on it. If nothing is known yet but what the object shows,
the instance's facts are unconfirmed (no mutation, no write) until a later read agrees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from eni_tasks.domain.addresses import secondary_count
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.figures import figures_from_object
from eni_tasks.domain.lacking import (
    PROOF_SECONDS,
    believed,
    lacked,
    lacks_used,
    missing_addresses,
    without_released,
)
from eni_tasks.domain.planner import plan
from eni_tasks.domain.status import next_write
from eni_tasks.domain.watermark import in_order
from eni_tasks.domain.words import counted
from eni_tasks.errors import Ec2Error, Ec2Reaction, InvalidInput, NodeGone
from eni_tasks.model.cilium_node import CiliumNode
from eni_tasks.model.network import Infrastructure, InstanceId, Interface, Limits, NodeName, VpcId
from eni_tasks.model.node import Node, Policy
from eni_tasks.model.plan import Plan, Urgency
from eni_tasks.model.state import Facts, NodeState, ReadResult
from eni_tasks.model.work import Claim, Pass, WorkKind
from eni_tasks.observability.logs import logger
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.services.mutate import Postponed
from eni_tasks.services.work import Report, Work
from eni_tasks.state import State
from eni_tasks.state.limiter import LIMITS

PORTION_COUNT = 200  # instances per call: EC2 takes at most 200 values in a filter
NEGATIVE_LIMITS_SECONDS = 600.0  # an unknown instance type is asked for again after this
CONFIRM_MARGIN_SECONDS = 0.5  # a read that confirms must begin later than the settle time after the first
LIMITS_BREAKER_SECONDS = 60.0
LONGEST_RETRY_SECONDS = 60.0  # of a read that was not accepted; by then everything is read again
LACKING_SECONDS = 15.0  # an instance of which a read lacks something is read again after this
RETRY_SECONDS = 10.0  # after a failed read: trouble of the whole account isn't asked about more often
MAX_PORTIONS = 50  # of one pass over requested instances: it has to end within its claim


class Unread(NamedTuple):
    """Nodes that need another read.

    Nothing is done to those with `unconfirmed` facts until then. Of the `lacking` something was not shown. The read of
    the `refused` was not accepted.
    """

    unconfirmed: list[NodeName]
    lacking: list[NodeName]
    refused: list[tuple[NodeName, InstanceId]]


class Refresh:
    """The two passes that read, and the read of one node.

    Args:
        state: the shared state.
        work: claims passes, and enqueues what follows.
        ec2: the calls.
        policy: what the settings decide for all nodes.
        instance_tags: only instances with all these tags are served.
        settle_seconds: EC2's reads may lag this long behind its answers to mutations.
    """

    def __init__(  # noqa: PLR0913 - what reads need
        self,
        state: State,
        work: Work,
        ec2: Ec2,
        policy: Policy,
        *,
        instance_tags: dict[str, str],
        settle_seconds: float,
    ) -> None:
        self._state = state
        self._work = work
        self._ec2 = ec2
        self._policy = policy
        self._instance_tags = instance_tags
        self._settle_seconds = settle_seconds

    # -- passes ----------------------------------------------------------------------------------
    def read_inventory(self) -> Report:
        """Read everything that belongs to the known nodes; returns a short report."""
        return self._work.run_pass(Pass.INVENTORY, self._pass)

    def read_requested(self) -> Report:
        """Read the instances for which a read was requested; returns a short report."""
        return self._work.run_pass(Pass.INSTANCES, self._pass)

    def _pass(self, claim: Claim, report: Report) -> float | None:
        try:
            count = self._read_all() if claim.name == Pass.INVENTORY else self._read_due()
        except Ec2Error as error:
            self._state.reads.note_failure(str(error))
            logger().warning("read_failed", name=claim.name, action=error.action, code=error.code, error=error.message)
            report |= {"failed": str(error), "again_after_seconds": RETRY_SECONDS}
            return RETRY_SECONDS
        except Postponed as error:
            wait = max(1.0, error.retry_after_seconds or 0.0)
            report |= {"stopped": str(error), "again_after_seconds": wait}
            return wait
        if count and claim.name == Pass.INVENTORY:
            self._state.reads.note_success()
        report["instances"] = count
        return None

    def _read_all(self) -> int:
        started_at = self._state.now()
        nodes = {node.name: node for node in _parsed(self._state.nodes.all_objects())}
        self._read_infrastructure(nodes.values())
        figures = {name: figures_from_object(node, self._policy.pre_allocate_default) for name, node in nodes.items()}
        served = self._served([nodes[name] for name in in_order(figures, releasing=self._policy.release_excess)])
        for start in range(0, len(served), PORTION_COUNT):
            self._read_portion(served[start : start + PORTION_COUNT], requested=False)
        self._state.reads.note_inventory(started_at)
        return len(served)

    def _read_due(self) -> int:
        count = 0
        for _ in range(MAX_PORTIONS):
            taken = self._state.reads.take(PORTION_COUNT, lease_seconds=60)
            if not taken:
                break
            nodes = self._served(list(_parsed(self._state.nodes.objects(taken))))
            known = self._state.network.infrastructure()
            if known is None or self._outdated(known) or any(n.vpc_id and n.vpc_id not in known.vpcs for n in nodes):
                self._read_infrastructure(_parsed(self._state.nodes.all_objects()))
            self._read_portion(nodes, requested=True)
            # Deleted only now: if this process dies, the lease of the read ends and it is taken again.
            self._state.reads.complete(taken)
            count += len(nodes)
        return count

    def _outdated(self, known: Infrastructure) -> bool:
        """Whether the infrastructure will soon be too old to base a mutation on."""
        return self._state.now() - known.described_at > self._policy.facts_max_age_seconds / 2

    def read_node(self, name: NodeName) -> Report:
        """Read one node's instance now, because a person asks; returns a short report.

        Needs no pass of its own: what it shows is compared with what is known, like every read.

        Raises:
            NodeGone: no such node is known.
            InvalidInput: its object can't be understood, or names no instance.
            Ec2Error: EC2 refused; nothing was entered.
        """
        stored = self._state.nodes.object(name)
        if stored is None:
            raise NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
        node = parse_node(stored)
        if not self._served([node]):
            why = "it is ignored, has no instance id, or its instance lacks the tags of ENI_TASKS_INSTANCE_TAGS"
            raise InvalidInput(f"node {name} is not served: {why}")
        self._read_portion([node], requested=True)
        facts = self._state.facts.get([node.instance_id]).get(node.instance_id)
        report: dict[str, Any] = {"node": name, "instance": node.instance_id}
        if facts is None or not facts.known:
            said = facts.problem if facts is not None else ""
            said = said or (
                f"The read of {node.instance_id} was not accepted: it contradicts what was known, shows nothing, or a "
                f"mutation is pending. It is read again in {self._settle_seconds:.0f} s; nothing is changed until then."
            )
            return report | {"believed": False, "explanation": [said]}
        interfaces, addresses = len(facts.interfaces), sum(secondary_count(i) for i in facts.interfaces)
        said = (
            f"{node.instance_id} has {counted(interfaces, 'interface')} with {counted(addresses, 'secondary address')}."
        )
        return report | {"believed": True, "interfaces": interfaces, "addresses": addresses, "explanation": [said]}

    # -- reading ---------------------------------------------------------------------------------
    def _served(self, nodes: Sequence[Node]) -> list[Node]:
        """Leave out nodes that aren't served: ignored, without instance, or hidden by the tag filter."""
        nodes = [node for node in nodes if node.instance_id and not node.ignored]
        if not self._instance_tags or not nodes:
            return nodes
        tagged = self._ec2.tagged_instances(self._instance_tags)
        return [node for node in nodes if node.instance_id in tagged]

    def _read_infrastructure(self, nodes: Iterable[Node], others: Collection[VpcId] = ()) -> None:
        """Read what nodes share; it is replaced as a whole or, when a page fails, not at all.

        Args:
            nodes: all nodes.
            others: VPCs that only interfaces are in; those that EC2 described before are read again, too.
        """
        vpc_ids: set[VpcId] = {node.vpc_id for node in nodes if node.vpc_id}
        if vpc_ids:
            known = self._state.network.infrastructure() or Infrastructure()
            described = {vpc_id for vpc_id in known.other_vpc_ids if vpc_id in known.vpcs}
            other_vpc_ids = tuple(sorted({*described, *others} - vpc_ids))
            started_at = self._state.now()
            answer = self._ec2.infrastructure([*sorted(vpc_ids), *other_vpc_ids])
            answer = msgspec.structs.replace(answer, described_at=started_at, other_vpc_ids=other_vpc_ids)
            self._state.network.put_infrastructure(answer)

    def _read_other_vpcs(self, shown: Iterable[Interface]) -> None:
        """Have the VPCs described that interfaces are in and no node: the object shows every attached interface."""
        known = self._state.network.infrastructure()
        if known is not None:
            asked_for = {*known.vpcs, *known.other_vpc_ids}
            others = {interface.vpc_id for interface in shown if interface.vpc_id} - asked_for
            if others:
                self._read_infrastructure(_parsed(self._state.nodes.all_objects()), others)

    def _read_limits(self, nodes: Sequence[Node]) -> None:
        """Ask once, by name, for all types that were not asked for yet."""
        types = {node.instance_type for node in nodes if node.instance_type}
        unknown = types - self._state.network.limits(types).keys()
        if unknown and (found := self._described(unknown)) is not None:
            for name in sorted(unknown - found.keys()):
                logger().warning("instance_type_unknown", instance_type=name)
            self._state.network.put_limits(
                {name: found.get(name) for name in unknown}, negative_ttl_seconds=NEGATIVE_LIMITS_SECONDS
            )

    def _described(self, types: set[str]) -> Mapping[str, Limits] | None:
        """Ask EC2 for limits; None if the right is missing, which says nothing about the types."""
        try:
            found = self._ec2.limits(types)
        except Ec2Error as error:
            if error.reaction is not Ec2Reaction.ACCOUNT_WIDE:
                raise
            # Nodes of known types are served all the same.
            logger().warning("limits_not_read", code=error.code, error=error.message)
            self._state.limiter.open_breaker(LIMITS, f"{error.code}: {error.message}", LIMITS_BREAKER_SECONDS)
            return None
        self._state.limiter.close_breaker(LIMITS)
        return found

    def _read_portion(self, nodes: list[Node], *, requested: bool) -> None:
        """Read up to 200 nodes, and enqueue those that have something to do."""
        if not nodes:
            return
        self._read_limits(nodes)
        unread = self._read_instances(nodes)
        self._enqueue_what_follows([node.name for node in nodes])
        # Nothing is done to a node with unconfirmed facts until it is read once more. What the periodic read
        # could not enter, the next periodic read will.
        delay_seconds = self._settle_seconds + CONFIRM_MARGIN_SECONDS
        self._state.reads.request(unread.lacking, delay_seconds=LACKING_SECONDS)
        self._state.reads.request(unread.unconfirmed, delay_seconds=delay_seconds)
        if requested:
            self._state.reads.retry(unread.refused, first_seconds=delay_seconds, longest_seconds=LONGEST_RETRY_SECONDS)

    def _read_instances(self, nodes: Sequence[Node]) -> Unread:
        """Read the interfaces of up to 200 nodes in one call, and merge them into the facts."""
        instance_ids = [node.instance_id for node in nodes]
        before = self._state.facts.get(instance_ids)
        started_at = self._state.now()
        answer = self._ec2.interfaces_of(instance_ids)
        problems = {id_: str(found) for id_, found in answer.items() if isinstance(found, InvalidInput)}
        self._state.facts.note_problems(problems)
        shown = {id_: found for id_, found in answer.items() if not isinstance(found, InvalidInput)}
        self._read_other_vpcs(interface for interfaces in shown.values() for interface in interfaces)
        results = {
            node.name: result
            for node in nodes
            if (interfaces := shown.get(node.instance_id)) is not None
            and (result := self._compared(node, interfaces, before.get(node.instance_id), started_at)) is not None
        }
        accepted = self._state.facts.merge(list(results.values()), started_at=started_at)
        known = {name for name, ok in zip(results, accepted, strict=True) if ok}
        pending = {facts.instance_id for facts in before.values() if facts.mutation_pending}
        lacking = [name for name in results if name in known and results[name].lacking]
        return Unread(
            unconfirmed=[
                name
                for name in results
                if (name in known and results[name].unconfirmed)
                or (name in lacking and results[name].instance_id in pending)
            ],
            lacking=lacking,
            refused=[(node.name, node.instance_id) for node in nodes if node.name not in known],
        )

    def _compared(
        self, node: Node, interfaces: tuple[Interface, ...], known: Facts | None, started_at: float
    ) -> ReadResult | None:
        """What is to be merged for one instance, if anything."""
        if (known is None or not known.described_at) and not interfaces:
            # A new instance that EC2 does not list yet looks like this; so does one that is gone.
            logger().warning("instance_shows_no_interfaces", node=node.name, instance=node.instance_id)
            return None
        if known is not None and known.released:
            interfaces = without_released(known, interfaces, started_at)
        result = ReadResult(
            instance_id=node.instance_id,
            interfaces=interfaces,
            version=known.version if known is not None else 0,
            served=bool(node.pool),
        )
        if known is not None and known.described_at and not (known.unconfirmed_since or known.outdated):
            joined, lacking = believed(known, interfaces, started_at)
            if lacking:
                logger().warning(
                    "read_lacks_something", node=node.name, instance=node.instance_id, lacking=len(lacking)
                )
            return msgspec.structs.replace(result, interfaces=joined, lacking=lacking)
        # There are no accepted facts to join the read with: what was seen, and what pods may use, must be there.
        seen_before = known is not None and bool(lacked(known.interfaces, interfaces))
        if not (seen_before or missing_addresses(node, interfaces)):
            return result
        proof = PROOF_SECONDS if seen_before or lacks_used(node, interfaces) else 0.0
        since = known.unconfirmed_since if known is not None else 0.0
        confirmed = 0 < since < started_at - max(proof, self._settle_seconds)
        logger().warning("read_lacks_something", node=node.name, instance=node.instance_id, believed=confirmed)
        return msgspec.structs.replace(result, unconfirmed=not confirmed)

    # -- what follows ----------------------------------------------------------------------------
    def _enqueue_what_follows(self, names: Sequence[NodeName]) -> None:
        """Enqueue the nodes that have something to do, the most urgent first.

        The same planner and the same comparison that a run uses decide here, so an idle fleet causes no run.
        """
        maintain: list[tuple[NodeName, Urgency]] = []
        publish: list[tuple[NodeName, Urgency]] = []
        for name, state in self._state.nodes.read_many(names):
            if not isinstance(state, NodeState):
                logger().info("node_not_planned", node=name, reason=str(state))
                continue
            decision = plan(state, self._policy, state.now)
            to_maintain = (
                decision.action is not None
                or state.journal is not None
                or _new_trouble(state, decision)
                or decision.release not in (None, state.memory.release)
            )
            if to_maintain:
                maintain.append((name, decision.urgency))
            # A run ends by comparing: what the object lacks is written together with what comes. Addresses that
            # are gone don't wait for that, since the run may be in a long back-off.
            if (not to_maintain or _shows_missing(state)) and self._differs(state):
                publish.append((name, decision.urgency))
        for kind, items in ((WorkKind.MAINTAIN, maintain), (WorkKind.PUBLISH, publish)):
            if items:
                self._work.enqueue(kind, sorted(items, key=lambda item: item[1]))

    def _differs(self, state: NodeState) -> bool:
        return state.has_something_to_show and next_write(state.obj, state, self._policy) is not None


def _new_trouble(state: NodeState, decision: Plan) -> bool:
    """Say whether a run would report a trouble that was not reported yet, or that one is over."""
    return state.has_something_to_show and decision.trouble != state.memory.trouble


def _shows_missing(state: NodeState) -> bool:
    return state.interfaces is not None and bool(missing_addresses(state.node, state.interfaces))


def _parsed(objects: Iterable[CiliumNode]) -> Iterable[Node]:
    for obj in objects:
        try:
            yield parse_node(obj)
        except InvalidInput as error:
            logger().warning("node_not_understood", error=str(error))
