"""`python -m eni_tasks.sandbox.fleet_keeper`: a fleet of simulated nodes as a process of its own.

For servers that something else starts, such as Compose. It brings the fleet to the wanted number of nodes every
few seconds, so it may be restarted, and so may the EC2 sandbox (which then has forgotten its instances).
KUBECONFIG leads to the Kubernetes API, the sandbox's or a real one. SIGTERM and SIGINT end it; the nodes stay.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

import urllib3

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.errors import EniTasksError, NodeGone
from eni_tasks.sandbox.ec2.admin import Ec2Admin
from eni_tasks.sandbox.ec2.records import WorldView
from eni_tasks.sandbox.fleet import Agents, Fleet
from eni_tasks.sandbox.serving import ENDING_SIGNALS, hold_signals

_KEEP_SECONDS = 10.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m eni_tasks.sandbox.fleet_keeper", description="Simulated nodes whose pods come and go."
    )
    parser.add_argument("--ec2", required=True, metavar="URL", help="of the EC2 sandbox")
    parser.add_argument("--nodes", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--changes-per-second", type=float, default=1.0, help="of nodes' usage (default: 1)")
    arguments = parser.parse_args()
    if arguments.nodes < 1 or arguments.changes_per_second <= 0:
        parser.error("--nodes and --changes-per-second must be positive")
    return arguments


def network(view: WorldView) -> dict[str, Any]:
    """What `Fleet` must know of a default world (`build_default_world`) that another process built.

    Args:
        view: all records of that world.

    Returns:
        The subnets for nodes and for pods by zone, and the security group of nodes.
    """
    by_purpose = {
        purpose: {
            subnet.availability_zone[-1]: subnet.id for subnet in view.subnets if subnet.tags.get("purpose") == purpose
        }
        for purpose in ("nodes", "pods")
    }
    node_group = next(group.id for group in view.security_groups if group.name == "nodes")
    return {"node_subnets": by_purpose["nodes"], "pod_subnets": by_purpose["pods"], "node_group": node_group}


def _live(fleet: Fleet, nodes: int, pause_seconds: float) -> None:
    agents = Agents(fleet, 1 / pause_seconds, seed=1)
    keep_at = 0.0
    while signal.sigtimedwait(ENDING_SIGNALS, pause_seconds) is None:
        if time.monotonic() >= keep_at:
            fleet.keep(nodes)
            keep_at = time.monotonic() + _KEEP_SECONDS
        try:
            agents.change_one()
        except NodeGone:
            keep_at = 0.0  # deleted by a person: it comes back as a new node


def main() -> int:
    """Keep the fleet until a signal comes; returns the exit code."""
    arguments = _arguments()
    hold_signals()
    try:
        ec2 = Ec2Admin(arguments.ec2)
        fleet = Fleet(ec2, network(ec2.view()), KubeClient(30.0, 8))
        _live(fleet, arguments.nodes, 1 / arguments.changes_per_second)
    except (EniTasksError, urllib3.exceptions.HTTPError, RuntimeError) as error:
        # The service manager starts this process again, which then reads everything again.
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
