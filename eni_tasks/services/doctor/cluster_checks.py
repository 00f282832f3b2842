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


def examine_cluster(connect: Callable[[], ClusterRights], *, pods: bool) -> tuple[list[Finding], float | None]:
    """Look at the API server.

    Args:
        connect: makes the way there.
        pods: whether pods are watched, too.

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
        for verb in ("list", "watch") if pods else ():
            _right_to_pods(area, rights, verb)
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


def _right_to_pods(area: Area, rights: ClusterRights, verb: str) -> None:
    what = f"{verb} pods"
    allowed, why = rights.may(verb, "pods", group="")
    if allowed:
        area.ok(what, "Allowed.")
        return
    area.trouble(
        what,
        f"Denied{f' ({why})' if why else ''}: without it waiting pods are not counted, and nodes fill up more slowly.",
        f'Give the ClusterRole the verb "{verb}" on pods (the chart\'s templates/rights.yaml does), or set '
        "ENI_TASKS_SURGE=false.",
    )
