"""A CiliumNode appeared, changed or went: store it, and enqueue the node if there is something to do.

The decision is made from the object alone, so the cost of a change doesn't grow with the fleet. What the object
can't tell (limits, EC2's view) the run finds out. Reads of new instances are only requested here: the ticker
collects the requests of a second into one call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from eni_tasks.domain import beside_pool, watermark
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.figures import figures_from_object
from eni_tasks.domain.pool_demand import asked_before_change, with_earlier_pre_allocate
from eni_tasks.errors import InvalidInput
from eni_tasks.model.cilium_node import CiliumNode, version_key
from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.model.node import Mark, Node, Policy
from eni_tasks.model.plan import Figures, Urgency
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import Page
from eni_tasks.services.work import Work
from eni_tasks.state import State
from eni_tasks.state.runs import NewObjects


class Ingest:
    """Takes in what the watcher sees.

    Args:
        state: the shared state.
        work: enqueues what follows.
        policy: what the settings decide for all nodes.
        quiet_seconds: for how long a mutation may run and then not be seen by reads.
    """

    def __init__(self, state: State, work: Work, policy: Policy, *, quiet_seconds: float) -> None:
        self._state = state
        self._work = work
        self._policy = policy
        self._quiet_seconds = quiet_seconds

    def take_list(self, pages: Iterable[Page[CiliumNode]]) -> tuple[int, str]:
        """Take in a complete list.

        A list is as new as anything that was stored before it began. One that is older shows that etcd was restored
        from a backup: its objects are the truth, although newer ones are stored.

        Args:
            pages: read from the API server while they are taken in.

        Returns:
            The number of objects, and the list's version.
        """
        newest = self._state.nodes.newest_version()
        names: set[str] = set()
        version, went_back = "", False
        for page in pages:
            version = page.resource_version
            went_back = version_key(version) < version_key(newest)
            self.changed(page.objects, went_back=went_back)
            names.update(obj.metadata.name for obj in page.objects)
        if went_back:
            logger().warning("objects_went_back", resource_version=version, stored_version=newest)
        self._remove_unlisted(names, None if went_back else version)
        return len(names), version

    def changed(self, objects: Sequence[CiliumNode], *, went_back: bool = False) -> None:
        """Take in objects as they are now (a page of a list, or some events), in any order of arrival.

        Args:
            objects: CiliumNodes. One that is not newer than what is stored is ignored; one that can't be
                understood is logged and affects no other node.
            went_back: the API server's history lies below what is stored (etcd was restored from a backup): the
                objects replace newer ones, and each is compared with EC2's facts again.
        """
        if went_back:
            self._state.coordination.note_restore()
        new = NewObjects(any_version=went_back)
        served_before = False
        for shown, before in zip(objects, self._state.nodes.before(objects, any_version=went_back), strict=True):
            if before is not False:
                obj = shown
                if before is not None and asked_before_change(obj, before):
                    obj = with_earlier_pre_allocate(obj, before, self._state.now())
                new.objects.append(obj)
                node, old = self._parsed(obj), self._parsed(before)
                if node is not None and not node.ignored:
                    self._compare(node, old, new)
                    if went_back and (not new.publish or new.publish[-1][0] != node.name):
                        new.publish.append((node.name, Urgency.DEFICIT))
                    # A node that shows addresses and is not stored was served before this Redis knew of it.
                    served_before |= old is None and bool(node.pool)
        if served_before:
            self._state.coordination.begin_quiet_period(self._quiet_seconds)
        if new.objects:
            new.maintain.sort(key=lambda item: item[1])
            self._work.store(new)

    def _compare(self, node: Node, old: Node | None, new: NewObjects) -> None:
        """Compare a node with what was stored, and note what follows."""
        figures = figures_from_object(node, self._policy.pre_allocate_default)
        if old is None or (old.uid, old.instance_id) != (node.uid, node.instance_id):
            self._begin_new_machine(old, node)
            new.reads.append(node.name)
        elif (wanted := self._agents_part(node, old)) != (had := self._agents_part(old, old)):
            if figures.needed > 0 or self._releases(node, old, figures):
                new.maintain.append((node.name, _urgency(node, figures)))
            elif beside_pool.asks_anew(node, old):
                new.maintain.append((node.name, Urgency.DEFICIT))
            # An agent of another contract may be shown another pool.
            demand = had.demand if wanted.demand is not None else None
            shown = msgspec.structs.replace(wanted, used=had.used, release_ips=had.release_ips, demand=demand)
            if shown != had:
                new.publish.append((node.name, Urgency.DEFICIT))
        else:
            return
        if figures.needed > 0:
            new.deficits.append(node.name)

    def removed(self, name: str, uid: str) -> None:
        """Take in a deletion: the node's work, memory and facts are deleted, unless it is another object by now."""
        node = NodeName(name)
        stored = self._state.nodes.object(node)
        if self._state.nodes.remove(node, uid=uid):
            self._work.collect_orphans(self._delete_rest(node, stored))

    def _remove_unlisted(self, names: Collection[str], version: str | None) -> None:
        """Remove stored nodes that a complete list lacks: they were deleted while no watch was open.

        Args:
            names: all nodes of the list.
            version: the list's version; a node stored at a later version is newer than the list. None: no node is.
        """
        instances: list[InstanceId] = []
        for stored in list(self._state.nodes.all_objects()):
            name = NodeName(stored.metadata.name)
            if name not in names and self._state.nodes.remove(name, resource_version=version or ""):
                instances += self._delete_rest(name, stored)
        for name in self._state.nodes.leftovers():
            self._state.queue.remove(name)
            self._state.nodes.remove_leftovers(name)
            logger().info("leftovers_deleted", node=name)
        if instances:
            self._work.collect_orphans(instances)

    def _delete_rest(self, name: NodeName, stored: CiliumNode | None) -> list[InstanceId]:
        """Delete what else is stored of a node; returns its instance, if it had one."""
        self._state.queue.remove(name)
        self._state.nodes.remove_leftovers(name)
        node = self._parsed(stored)
        logger().info("node_removed", node=name)
        if node is None or not node.instance_id or self._state.nodes.owner(node.instance_id) is not None:
            return []  # another node names the same instance
        self._state.facts.remove(node.instance_id)
        return [node.instance_id]

    def _begin_new_machine(self, old: Node | None, node: Node) -> None:
        """Another machine under the same name starts from nothing."""
        if old is not None and old.instance_id != node.instance_id:
            self._state.queue.remove(node.name)
            if old.instance_id and self._state.nodes.owner(old.instance_id) in (None, node.name):
                self._state.facts.remove(old.instance_id)
        logger().info("node_new", node=node.name, instance=node.instance_id)

    def _parsed(self, obj: CiliumNode | None) -> Node | None:
        if obj is None:
            return None
        try:
            return parse_node(obj)
        except InvalidInput as error:
            logger().warning("node_not_understood", node=obj.metadata.name, error=str(error))
            return None

    def _agents_part(self, node: Node, old: Node) -> Node:
        """The node without the fields that this system writes: its own write must not count as a change.

        Of the releases only the agent's answers are left that the old node does not have.
        """
        filled_in = not old.pre_allocate and node.pre_allocate <= self._policy.pre_allocate_default
        pre_allocate = 0 if filled_in else node.pre_allocate
        answers = {
            address: state
            for address, state in node.release_ips.items()
            if state in (Mark.READY, Mark.KEPT) and old.release_ips.get(address) != state
        }
        return msgspec.structs.replace(
            node, pool={}, shown_interfaces=frozenset(), pre_allocate=pre_allocate, release_ips=answers
        )

    def _releases(self, node: Node, old: Node, figures: Figures) -> bool:
        """Whether a change may matter to addresses that are in excess, or that are about to be given back."""
        if not self._policy.release_excess:
            return False
        if node.demand is None or old.demand is None:
            return node.demand is not old.demand or figures.excess > 0 or bool(node.release_ips)
        return node.demand.listed != old.demand.listed


def _urgency(node: Node, figures: Figures) -> Urgency:
    """How pressing it is; with more addresses marked than are in excess, pods may wait for one of them."""
    marked = sum(state in (Mark.MARKED, Mark.READY) for state in node.release_ips.values())
    urgency = watermark.urgency(figures)
    return min(urgency, Urgency.DEFICIT) if marked > figures.excess else urgency
