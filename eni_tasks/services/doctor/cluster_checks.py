"""The API server: whether it serves CiliumNodes, and lets us do what each process does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from eni_tasks.errors import ClusterRefused, ClusterUnavailable, InvalidInput
from eni_tasks.ports.doctor import ClusterRights
from eni_tasks.services.doctor.findings import Area, Finding

NODES, STATUS = "ciliumnodes", "status"
# Verb, subresource, and what stops without it.
NEEDED = (
    ("list", "", "the watcher sees no node"),
    ("watch", "", "the watcher sees no change"),
    ("get", "", "a conflicting write is never resolved"),
    ("patch", "", "pools are never written"),
    ("patch", STATUS, "interfaces and trouble are never shown"),
)
EVENT_VERBS = ("create", "patch")


def examine_cluster(
    connect: Callable[[], ClusterRights], *, surge: bool = False, release: bool = False, kube_events: bool = False
) -> tuple[list[Finding], float | None]:
    """Look at the API server.

    Args:
        connect: makes the way there.
        surge: whether pods are watched.
        release: whether pods and Nodes are read before a release.
        kube_events: whether Events are written about nodes.

    Returns:
        The findings, and the server's clock (None: it gave none).
    """
    area = Area("api server")
    clock = None
    try:
        rights = connect()
        served = rights.serves()
        area.ok("reachable", "It answers, and accepts our credentials.")
        _definition(area, served)
        for verb, subresource, loss in NEEDED:
            _right(area, rights, verb, subresource, loss)
        for more in _more_rights(surge=surge, release=release, kube_events=kube_events):
            _other_right(area, rights, more)
        clock = rights.now()
    except InvalidInput as error:
        area.trouble("reachable", str(error), "Set KUBECONFIG, or run this in a pod of the watcher or of a worker.")
    except ClusterUnavailable as error:
        area.trouble("reachable", str(error), "See that the server of KUBECONFIG is up and can be reached from here.")
    except ClusterRefused as error:
        area.trouble("reachable", str(error), "See who we are to it: `kubectl auth whoami` with the same KUBECONFIG.")
    return area.findings, clock


def _definition(area: Area, served: frozenset[str]) -> None:
    if f"{NODES}/{STATUS}" in served:
        area.ok("CiliumNode", "ciliumnodes.cilium.io/v2 are served, with their status.")
    elif NODES in served:
        area.trouble(
            "CiliumNode", "ciliumnodes have no status subresource.", "Install the definition that comes with Cilium."
        )
    else:
        area.trouble(
            "CiliumNode", "ciliumnodes.cilium.io/v2 are not served.", "Install Cilium, or its definitions, first."
        )


def _right(area: Area, rights: ClusterRights, verb: str, subresource: str, loss: str) -> None:
    what = f"{verb} {NODES}{'/' + subresource if subresource else ''}"
    allowed, why = rights.may(verb, NODES, subresource)
    if allowed:
        area.ok(what, "Allowed.")
        return
    resource = f"{NODES}/{subresource}" if subresource else NODES
    area.trouble(
        what,
        f"Denied{f' ({why})' if why else ''}: without it {loss}.",
        f'Give the ClusterRole the verb "{verb}" on {resource} of cilium.io (the chart\'s templates/rights.yaml does).',
    )


class _OtherRight(NamedTuple):
    """A right beside those on CiliumNodes: what is lost without it, and the setting that makes it needless."""

    verb: str
    resource: str
    loss: str
    setting: str
    namespace: str = ""


def _more_rights(*, surge: bool, release: bool, kube_events: bool) -> Iterator[_OtherRight]:
    if surge:
        loss = "waiting pods are not counted, and nodes fill up more slowly"
        yield from (_OtherRight(verb, "pods", loss, "ENI_TASKS_SURGE=false") for verb in ("list", "watch"))
    if release:
        loss = "nothing is released from nodes with agents of Cilium 1.20"
        wanted = (("list", "pods"), ("get", "nodes"))
        setting = "ENI_TASKS_RELEASE_EXCESS=false"
        yield from (_OtherRight(*each, loss, setting) for each in wanted if not (surge and each == wanted[0]))
    if kube_events:
        loss, off = "`kubectl describe` shows nothing of what we do", "ENI_TASKS_KUBE_EVENTS=off"
        yield from (_OtherRight(verb, "events", loss, off, "default") for verb in EVENT_VERBS)


def _other_right(area: Area, rights: ClusterRights, one: _OtherRight) -> None:
    what = f"{one.verb} {one.resource}"
    allowed, why = rights.may(one.verb, one.resource, group="", namespace=one.namespace)
    if allowed:
        area.ok(what, "Allowed.")
        return
    where = f"a Role in the namespace {one.namespace}" if one.namespace else "the ClusterRole"
    area.trouble(
        what,
        f"Denied{f' ({why})' if why else ''}: without it {one.loss}.",
        f'Give {where} the verb "{one.verb}" on {one.resource} (the chart\'s templates/rights.yaml does), or set '
        f"{one.setting}.",
    )
