"""The API server: whether it serves CiliumNodes, and lets us do what each process does with them."""

from __future__ import annotations

from collections.abc import Callable

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
    connect: Callable[[], ClusterRights], *, kube_events: bool = False
) -> tuple[list[Finding], float | None]:
    """Look at the API server.

    Args:
        connect: makes the way there.
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
        for verb in EVENT_VERBS if kube_events else ():
            _event_right(area, rights, verb)
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


def _event_right(area: Area, rights: ClusterRights, verb: str) -> None:
    allowed, why = rights.may_events(verb)
    if allowed:
        area.ok(f"{verb} events", "Allowed.")
        return
    area.trouble(
        f"{verb} events",
        f"Denied{f' ({why})' if why else ''}: without it `kubectl describe` shows nothing of what we do.",
        f'Give a Role in the namespace default the verb "{verb}" on events (the chart\'s templates/rights.yaml does), '
        "or set ENI_TASKS_KUBE_EVENTS=off.",
    )
