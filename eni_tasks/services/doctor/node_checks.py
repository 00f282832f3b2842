"""The nodes: whether EC2 knows the instance of each."""

from __future__ import annotations

from collections.abc import Iterator

from eni_tasks.domain.cilium_node import creation_seconds, parse_node
from eni_tasks.domain.words import counted
from eni_tasks.errors import InvalidInput
from eni_tasks.model.node import Node
from eni_tasks.model.state import Facts
from eni_tasks.services.doctor.findings import Area, Finding
from eni_tasks.state import State

NAMES_SHOWN = 10
YOUNG_SECONDS = 30.0  # EC2 may not list the interfaces of a new instance yet


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
