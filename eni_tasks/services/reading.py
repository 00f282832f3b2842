"""Reading one portion of instances from EC2 and entering what may be believed.

Absence in one read is a hint: a read that misses an interface or an address known before only puts
the instance in doubt (no mutation, no write) until a second, later read says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from eni_tasks.domain.glance import misses_something, shows_what_is_gone
from eni_tasks.errors import Ec2Error, Ec2Reaction
from eni_tasks.model.network import InstanceId, Interface, Limits, NodeName, VpcId
from eni_tasks.model.node import Node
from eni_tasks.observability.logs import logger
from eni_tasks.ports.ec2 import Ec2
from eni_tasks.ports.state import Facts, Shown, Store

PORTION = 200  # instances per call: EC2 takes at most 200 values in a filter
NEGATIVE_LIMITS_SECONDS = 600.0  # an unknown instance type is asked for again after this


class Again(NamedTuple):
    """Nodes that want another read: those now in doubt, and those whose read could not be entered."""

    doubted: list[NodeName]
    refused: list[tuple[NodeName, InstanceId]]


class Reader:
    """Reads from EC2 into the shared state."""

    def __init__(self, store: Store, ec2: Ec2, *, instance_tags: dict[str, str], settle_seconds: float) -> None:
        self._store = store
        self._ec2 = ec2
        self._instance_tags = instance_tags
        self._settle_seconds = settle_seconds

    def served(self, nodes: Sequence[Node]) -> list[Node]:
        """Leave out nodes that aren't ours to serve: ignored, without instance, or hidden by the tag filter."""
        nodes = [node for node in nodes if node.instance_id and not node.ignored]
        if not self._instance_tags or not nodes:
            return nodes
        tagged = self._ec2.tagged_instances(self._instance_tags)
        return [node for node in nodes if node.instance_id in tagged]

    def infrastructure(self, vpc_ids: set[VpcId]) -> None:
        """Read what nodes share; replaced as a whole or, when a page fails, not at all."""
        if vpc_ids:
            started_at = self._store.now()
            answer = self._ec2.infrastructure(sorted(vpc_ids))
            self._store.put_infrastructure(msgspec.structs.replace(answer, described_at=started_at))

    def limits(self, nodes: Sequence[Node]) -> None:
        """Ask once, by name, for all types that nobody has asked for yet."""
        types = {node.instance_type for node in nodes if node.instance_type}
        unknown = types - self._store.limits(types).keys()
        if unknown:
            found = self._described(unknown)
            for name in sorted(unknown - found.keys()):
                logger().warning("instance_type_unknown", instance_type=name)
            self._store.put_limits(
                {name: found.get(name) for name in unknown}, negative_ttl_seconds=NEGATIVE_LIMITS_SECONDS
            )

    def _described(self, types: set[str]) -> Mapping[str, Limits]:
        try:
            return self._ec2.limits(types)
        except Ec2Error as error:
            if error.reaction is not Ec2Reaction.ACCOUNT_WIDE:
                raise
            # The right is missing: nodes of known types are served all the same.
            logger().warning("limits_not_read", code=error.code, error=error.message)
            return {}

    def instances(self, nodes: Sequence[Node]) -> Again:
        """Read the interfaces of up to 200 nodes in one call, and enter them.

        Args:
            nodes: nodes with an instance id.

        Returns:
            The nodes that want another read.

        Raises:
            Ec2Error: nothing was entered.
        """
        before = self._store.facts([node.instance_id for node in nodes])
        started_at = self._store.now()
        shown = self._ec2.interfaces_of([node.instance_id for node in nodes])
        entries = {
            node.name: entry
            for node in nodes
            if (interfaces := shown.get(node.instance_id)) is not None
            and (entry := self._entry(node, interfaces, before.get(node.instance_id), started_at)) is not None
        }
        entered = self._store.merge(list(entries.values()), started_at=started_at)
        known = {name for name, ok in zip(entries, entered, strict=True) if ok}
        return Again(
            doubted=[name for name in entries if name in known and entries[name].doubt],
            refused=[(node.name, node.instance_id) for node in nodes if node.name not in known],
        )

    def _entry(
        self, node: Node, interfaces: tuple[Interface, ...], known: Facts | None, started_at: float
    ) -> Shown | None:
        """What is to be entered for one instance, if anything."""
        if known is None and not interfaces:
            # A new instance that EC2 does not list yet looks like this; so does one that is gone.
            logger().warning("instance_shows_no_interfaces", node=node.name, instance=node.instance_id)
            return None
        misses = known is not None and misses_something(known.interfaces, interfaces)
        if known is None or known.doubted_at:
            # Nothing believed to compare with: what pods were told they may use must be there.
            misses = misses or shows_what_is_gone(node, interfaces)
        confirmed = known is not None and 0 < known.doubted_at < started_at - self._settle_seconds
        if misses:
            logger().warning("read_misses_something", node=node.name, instance=node.instance_id, believed=confirmed)
        version = known.version if known is not None else 0
        doubt = misses and not confirmed
        return Shown(
            instance_id=node.instance_id,
            interfaces=interfaces,
            version=version,
            doubt=doubt,
            served=bool(node.pool),
        )
