"""Giving excess addresses back: look at the object once more, acquire, call, record."""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from eni_tasks.domain import given_up, release
from eni_tasks.domain.addresses import expanded
from eni_tasks.domain.cilium_node import own_addresses, parse_node
from eni_tasks.domain.lacking import PROOF_SECONDS
from eni_tasks.errors import ClusterRefused, ClusterUnavailable, Ec2Error, LeaseLost
from eni_tasks.model.cilium_node import version_key
from eni_tasks.model.network import Interface
from eni_tasks.model.node import ReleaseMemory
from eni_tasks.model.plan import Unassign
from eni_tasks.model.state import NodeState, Outcome
from eni_tasks.model.work import Claim
from eni_tasks.observability.logs import logger
from eni_tasks.ports.kube import CiliumNodes, NodeUses
from eni_tasks.services.lease_renewer import local_seconds
from eni_tasks.services.mutate import Mutator
from eni_tasks.services.refusals import Step, react_to_refusal

ACTION = "UnassignPrivateIpAddresses"
OUTAGE_WAIT_SECONDS = 30.0  # nothing is urgent about a release


class LastLook(NamedTuple):
    """The API server, as it is asked right before addresses are released: CiliumNodes, and nodes' pods and health.

    A node must have been ready for `ready_seconds`.
    """

    nodes: CiliumNodes
    uses: NodeUses
    ready_seconds: float


def release_addresses(  # noqa: PLR0913 - a release and all that it depends on
    mutator: Mutator, last_look: LastLook, claim: Claim, state: NodeState, action: Unassign, memory: ReleaseMemory
) -> Step:
    """Give addresses back and record it, if the API server still says that no pod uses them.

    The stored object may be older than what the agent has done since, so it is read from the API server right before
    the call, which is not sent if it comes later than that by more than a few seconds.

    Args:
        mutator: makes the call.
        last_look: the API server.
        claim: the right to change the node.
        state: what the plan was made from.
        action: the plan's action.
        memory: the plan's memory of releases.

    Returns:
        What came of it; refusals included.

    Raises:
        LeaseLost, Postponed: nothing was sent, or another worker has continued since.
        NodeGone: the object was deleted.
        InvalidInput: the object can't be understood.
    """
    seen_at, began_at = local_seconds(), time.monotonic()
    try:
        review = _review(last_look, state, action, memory)
    except (ClusterUnavailable, ClusterRefused) as error:
        return Step(stop=True, again_after_seconds=OUTAGE_WAIT_SECONDS, trouble=f"nothing is released: {error}")
    if review.why_not:
        # The watch, or else the next read, brings what changed, and the node is planned again.
        logger().info("release_not_made", interface=action.interface_id, reason=review.why_not)
    allowed = review.allowed
    if allowed is None:
        did = f"released nothing from {action.interface_id}: {review.why_not}"
        return Step(stop=True, did=did, release=review.memory)
    try:
        mutator.call(
            claim,
            ACTION,
            lambda: mutator.ec2.unassign(allowed.interface_id, allowed.addresses, allowed.prefixes),
            urgent=False,
            instance_id=state.node.instance_id,
            seen_at=seen_at,
        )
    except Ec2Error as error:
        _observe(mutator, allowed, began_at, "failed")
        return react_to_refusal(mutator, error, claim, state, action.subnet_id)
    step = _record(mutator, claim, state, allowed, began_at)
    did = f"{step.did}, and not all that was planned: {review.why_not}" if review.why_not else step.did
    return msgspec.structs.replace(step, did=did, release=review.memory)


def _review(last_look: LastLook, state: NodeState, action: Unassign, memory: ReleaseMemory) -> given_up.Review:
    """Ask the API server what may be released of what was planned."""
    node = state.node
    # What an agent of Cilium 1.20 lists may be older than what it does: its pods' own addresses are looked at, too.
    use = last_look.uses.read(node.name) if node.demand is not None else None
    obj = last_look.nodes.get(node.name)
    if version_key(obj.metadata.resource_version) < version_key(state.obj.metadata.resource_version):
        return given_up.Review(None, "the object is older than the one that was planned for", memory)
    if use is None:
        why_not = release.objection(node, parse_node(obj), action)
        return given_up.Review(None if why_not else action, why_not, memory)
    if use.ready_since is None or state.now - use.ready_since < last_look.ready_seconds:
        why_not = "its Node has not been ready for the whole delay, so the agent may be silent"
        return given_up.Review(None, why_not, memory)
    in_use = use.addresses | own_addresses(obj)
    return given_up.review(state, parse_node(obj, state.now), in_use, action, memory)


def _record(mutator: Mutator, claim: Claim, state: NodeState, action: Unassign, began_at: float) -> Step:
    node = state.node
    names = (*action.prefixes, *action.addresses)
    count = sum(len(expanded(name)) for name in names)
    mutator.counters.count("ipam_ip_release_ops", {"subnet_id": action.subnet_id}, count)
    _observe(mutator, action, began_at, "success")
    now = mutator.state.now()
    before = state.facts.released if state.facts else {}
    outcome = Outcome(
        instance_id=node.instance_id,
        interfaces=(left := tuple(_without(interface, action) for interface in state.interfaces or ())),
        released={name: at for name, at in before.items() if now - at < PROOF_SECONDS} | dict.fromkeys(names, now),
        event=(
            ACTION,
            {"node": node.name, "interface": action.interface_id, "subnet": action.subnet_id, "count": count},
        ),
    )
    if not mutator.state.runs.record(claim, outcome):
        raise LeaseLost(
            f"node {node.name}: a later claim wrote already; that {count} addresses are gone is for it to read"
        )
    return Step(did=f"released {count} addresses of {action.interface_id}", changed=True, interfaces=left)


def _without(interface: Interface, action: Unassign) -> Interface:
    if interface.id != action.interface_id:
        return interface
    return msgspec.structs.replace(
        interface,
        addresses=tuple(address for address in interface.addresses if address not in action.addresses),
        prefixes=tuple(prefix for prefix in interface.prefixes if prefix not in action.prefixes),
    )


def _observe(mutator: Mutator, action: Unassign, began_at: float, status: str) -> None:
    kind = "releaseIPPrefixes" if action.prefixes else "releaseIP"
    labels = {"type": kind, "status": status, "subnet_id": action.subnet_id}
    mutator.counters.observe("ipam_release_duration_seconds", labels, time.monotonic() - began_at)
