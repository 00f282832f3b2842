"""Facts from EC2: everything periodically, doubtful instances as they come, 200 in a call.

Interfaces are read by the instances of known nodes, never by listing the account: what isn't ours
is never read, a subnet filter can't hide a node's first interface, and the cost follows the fleet.
Each portion is entered, compared and acted upon before the next is read, most needy nodes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.glance import figures_at_a_glance
from eni_tasks.domain.watermark import in_order
from eni_tasks.errors import Ec2Error, InvalidInput, NodeGone
from eni_tasks.model.network import NodeName
from eni_tasks.model.node import Node, Policy
from eni_tasks.observability.logs import logger
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import READS, Budgets, Work, WorkKind
from eni_tasks.services.dispatch import INSTANCES, INVENTORY, Dispatch
from eni_tasks.services.keeper import Keeper
from eni_tasks.services.reading import PORTION, Reader
from eni_tasks.services.review import Review

DOUBT_MARGIN_SECONDS = 0.5  # a read that confirms must begin later than the settle time after the first
FAILURES_THAT_STOP = 2  # in a row: one may happen
UNREAD_SECONDS = 60.0  # then nothing is changed until a good one, or for so long
LONGEST_RETRY_SECONDS = 60.0  # of a read that is not entered; by then everything is read again anyhow
RETRY_SECONDS = 10.0  # after a failed read: trouble of the whole account isn't asked about more often
MAX_PORTIONS = 50  # of one flight for noted instances: a claim isn't for ever


class Refresh:
    """The two flights; of each only one is in the air at a time."""

    def __init__(  # noqa: PLR0913 - the joint hands in every part once
        self,
        store: Store,
        work: Work,
        dispatch: Dispatch,
        keeper: Keeper,
        reader: Reader,
        review: Review,
        budgets: Budgets,
        policy: Policy,
        settle_seconds: float,
    ) -> None:
        self._store = store
        self._work = work
        self._dispatch = dispatch
        self._keeper = keeper
        self._reader = reader
        self._review = review
        self._budgets = budgets
        self._policy = policy
        self._settle_seconds = settle_seconds

    def inventory(self) -> dict[str, Any]:
        """Read everything that belongs to the known nodes; returns a short report."""
        return self._flight(INVENTORY)

    def instances(self) -> dict[str, Any]:
        """Read the instances that were noted as new or doubtful; returns a short report."""
        return self._flight(INSTANCES)

    def node(self, name: NodeName) -> dict[str, Any]:
        """Read one node's instance now, because a person asks; returns a short report.

        Needs no flight of its own: what it enters is compared with what is known, like every read.

        Raises:
            NodeGone: no such node is known.
            InvalidInput: its object can't be understood, or names no instance.
            Ec2Error: EC2 refused; nothing was entered.
        """
        stored = self._store.node(name)
        if stored is None:
            raise NodeGone(f"node {name}: no CiliumNode of that name is known; is the watcher running?")
        node = parse_node(stored)
        if not self._reader.served([node]):
            why = "it is ignored, has no instance id, or its instance lacks the tags of ENI_TASKS_INSTANCE_TAGS"
            raise InvalidInput(f"node {name} is not served: {why}")
        self._portion([node], noted=True)
        facts = self._store.facts([node.instance_id]).get(node.instance_id)
        report: dict[str, Any] = {"node": name, "instance": node.instance_id}
        if facts is None or facts.doubted_at or facts.in_air:
            what = "what was known before, or nothing, or a change under way"
            again = f"it is read again in {self._settle_seconds:.0f} s, and left alone until then"
            return report | {
                "believed": False,
                "explanation": [f"The read of {node.instance_id} contradicts {what}: {again}."],
            }
        interfaces, addresses = len(facts.interfaces), sum(len(i.addresses) for i in facts.interfaces)
        said = f"{node.instance_id} has {interfaces} interfaces with {addresses} secondary addresses."
        return report | {
            "believed": True,
            "interfaces": interfaces,
            "addresses": addresses,
            "explanation": [said],
        }

    def _flight(self, which: NodeName) -> dict[str, Any]:
        claim = self._work.claim(WorkKind.REFRESH, which)
        if claim is None:
            return {"skipped": "another worker is reading already"}
        again: float | None = None
        try:
            with self._keeper.hold(claim):
                count = self._all() if which == INVENTORY else self._noted()
            if count:
                self._store.note_reads(failed=False)
                self._budgets.close_breaker(READS)
        except Ec2Error as error:
            again = RETRY_SECONDS
            if not error.throttled and self._store.note_reads(failed=True) >= FAILURES_THAT_STOP:
                why = f"reads of EC2 fail ({error.action}: {error.code}: {error.message})"
                self._budgets.open_breaker(READS, why, UNREAD_SECONDS)
            logger().warning("read_failed", flight=which, action=error.action, code=error.code, error=error.message)
            return {"failed": str(error), "again_after_seconds": again}
        else:
            return {"instances": count}
        finally:
            self._dispatch.finish(claim, again_after_seconds=again)

    def _all(self) -> int:
        started_at = self._store.now()
        nodes = {node.name: node for node in _parsed(self._store.nodes())}
        self._reader.infrastructure({node.vpc_id for node in nodes.values() if node.vpc_id})
        figures = {name: figures_at_a_glance(node, self._policy.pre_allocate_default) for name, node in nodes.items()}
        served = self._reader.served([nodes[name] for name in in_order(figures, releasing=False)])
        for start in range(0, len(served), PORTION):
            self._portion(served[start : start + PORTION], noted=False)
        self._store.note_inventory(started_at)
        return len(served)

    def _noted(self) -> int:
        count = 0
        for _ in range(MAX_PORTIONS):
            taken = self._store.take_reads(PORTION, lease_seconds=60)
            if not taken:
                break
            nodes = self._reader.served(list(_parsed(self._store.objects(taken))))
            known = self._store.infrastructure()
            if known is None or any(node.vpc_id and node.vpc_id not in known.vpcs for node in nodes):
                self._reader.infrastructure({node.vpc_id for node in _parsed(self._store.nodes()) if node.vpc_id})
            self._portion(nodes, noted=True)
            # Struck out only now: if this process dies, the lease of the read runs out and it is taken again.
            self._store.done_reads(taken)
            count += len(nodes)
        return count

    def _portion(self, nodes: list[Node], *, noted: bool) -> None:
        if not nodes:
            return
        self._reader.limits(nodes)
        again = self._reader.instances(nodes)
        self._review.mark([node.name for node in nodes])
        # Nothing happens to a node in doubt until it is read once more. What the periodic read could not
        # enter, the next periodic read will.
        delay_seconds = self._settle_seconds + DOUBT_MARGIN_SECONDS
        if again.doubted:
            self._store.want_reads(again.doubted, delay_seconds=delay_seconds)
        if noted:
            self._store.retry_reads(again.refused, first_seconds=delay_seconds, most_seconds=LONGEST_RETRY_SECONDS)


def _parsed(objects: Iterable[Mapping[str, Any]]) -> Iterable[Node]:
    for obj in objects:
        try:
            yield parse_node(obj)
        except InvalidInput as error:
            logger().warning("node_not_understood", error=str(error))
