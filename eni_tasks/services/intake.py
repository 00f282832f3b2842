"""A CiliumNode appeared, changed or went: store it, and mark the node if there is something to do.

The decision is made from the object alone, so that the cost of a change doesn't grow with the
fleet; what the object can't tell (limits, EC2's view) the run finds out. Reading EC2 for new
instances is only noted here: the ticker collects a second's worth into one call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from eni_tasks.domain import watermark
from eni_tasks.domain.cilium_node import parse_node
from eni_tasks.domain.glance import figures_at_a_glance
from eni_tasks.errors import InvalidInput
from eni_tasks.model.network import InstanceId, NodeName
from eni_tasks.model.node import Node, Policy
from eni_tasks.model.plan import Urgency
from eni_tasks.observability.logs import logger
from eni_tasks.ports.state import Store
from eni_tasks.ports.work import Work
from eni_tasks.services.dispatch import Dispatch


@dataclass
class News:
    """What follows from the objects of one call: see `Runs.take_in`."""

    reads: list[NodeName] = field(default_factory=list)
    maintain: list[tuple[NodeName, Urgency]] = field(default_factory=list)
    publish: list[tuple[NodeName, Urgency]] = field(default_factory=list)
    needy: list[NodeName] = field(default_factory=list)
    predecessors: bool = False


class Intake:
    """Takes what the watcher sees."""

    def __init__(self, store: Store, work: Work, dispatch: Dispatch, policy: Policy, *, quiet_seconds: float) -> None:
        self._store = store
        self._work = work
        self._dispatch = dispatch
        self._policy = policy
        self._quiet_seconds = quiet_seconds

    def changed(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Take objects as they are now (a page of a list, or one event), in any order of arrival.

        Args:
            objects: trimmed CiliumNodes; one that is not newer than what is stored is passed over,
                one that cannot be understood is told in the log and affects nobody else.
        """
        newer: list[Mapping[str, Any]] = []
        news = News()
        for obj, before in zip(objects, self._store.before(objects), strict=True):
            if before is not False:
                newer.append(obj)
                self._look(self._parsed(obj), self._parsed(before), news)
        if news.predecessors:
            self._store.had_predecessors(self._quiet_seconds)
        if newer:
            maintain = sorted(news.maintain, key=lambda mark: mark[1])
            self._dispatch.take_in(newer, reads=news.reads, maintain=maintain, publish=news.publish, needy=news.needy)

    def _look(self, node: Node | None, old: Node | None, news: News) -> None:
        """See what is new about a node, and note what follows from it."""
        if node is None or node.ignored:
            return
        figures = figures_at_a_glance(node, self._policy.pre_allocate_default)
        if old is None or (old.uid, old.instance_id) != (node.uid, node.instance_id):
            self._replaced(old, node)
            news.reads.append(node.name)
            # We know nothing of a node that was served: Redis was emptied, or others ran before us.
            news.predecessors |= old is None and bool(node.pool)
        elif (wanted := self._theirs(node, old)) != (had := self._theirs(old, old)):
            if figures.needed > 0:
                news.maintain.append((node.name, watermark.urgency(figures)))
            if msgspec.structs.replace(wanted, used=had.used) != had:
                news.publish.append((node.name, Urgency.DEFICIT))
        else:
            return
        if figures.needed > 0:
            news.needy.append(node.name)

    def gone(self, name: NodeName, uid: str) -> None:
        """Take a deletion: the node's work, memory and facts go with it, unless it is another object by now."""
        stored = self._store.node(name)
        if self._store.drop_node(name, uid=uid):
            self._dispatch.collect_orphans(self._forget(name, stored))

    def listed(self, names: Collection[str], resource_version: str) -> None:
        """Take the end of a complete list: stored nodes that it lacks were deleted while nobody watched.

        Args:
            names: all nodes of the list.
            resource_version: the list's version; a node stored at a later version is newer than the list.
        """
        gone: list[InstanceId] = []
        for stored in list(self._store.nodes()):
            name = NodeName(stored["metadata"]["name"])
            if name not in names and self._store.drop_node(name, resource_version=resource_version):
                gone += self._forget(name, stored)
        if gone:
            self._dispatch.collect_orphans(gone)

    def _forget(self, name: NodeName, stored: Mapping[str, Any] | None) -> list[InstanceId]:
        """Drop what else is known of a node; returns its instance, if it had one."""
        self._work.forget(name)
        self._store.forget(name)
        node = self._parsed(stored)
        if node and node.instance_id:
            self._store.drop_facts(node.instance_id)
        logger().info("node_gone", node=name)
        return [node.instance_id] if node and node.instance_id else []

    def _replaced(self, old: Node | None, node: Node) -> None:
        """Another machine under the same name starts from nothing."""
        if old is not None and old.instance_id != node.instance_id:
            self._work.forget(node.name)
            if old.instance_id:
                self._store.drop_facts(old.instance_id)
        logger().info("node_new", node=node.name, instance=node.instance_id)

    def _parsed(self, obj: Mapping[str, Any] | None) -> Node | None:
        if obj is None:
            return None
        try:
            return parse_node(obj)
        except InvalidInput as error:
            name = obj.get("metadata", {}).get("name")
            logger().warning("node_not_understood", node=name, error=str(error))
            return None

    def _theirs(self, node: Node, old: Node) -> Node:
        """The node without what we write ourselves: our own write must not count as a sign of life (S-26)."""
        filled_in = not old.pre_allocate and node.pre_allocate <= self._policy.pre_allocate_default
        pre_allocate = 0 if filled_in else node.pre_allocate
        return msgspec.structs.replace(node, resource_version="", pool={}, release_ips={}, pre_allocate=pre_allocate)
