"""`python -m eni_tasks.sandbox.kube.installing`: prepares a real API server for CiliumNodes.

For an API server that starts empty and calls itself 127.0.0.1, as k3s does in a container: writes a kubeconfig
that leads there from elsewhere, and applies the CiliumNode definition. May be run again at any time.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from eni_tasks.adapters.kube.client import KubeClient
from eni_tasks.adapters.kube.nodes import NODES_PATH
from eni_tasks.errors import ClusterRefused, EniTasksError
from eni_tasks.sandbox.kube.schema import definition

_DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SERVED_SECONDS, _LOOK_SECONDS = 60.0, 0.2


def redirect(kubeconfig: Path, server: str, into: Path) -> None:
    """Write a copy of a kubeconfig that leads to another address of the same server.

    Args:
        kubeconfig: the server's own.
        server: its URL as others reach it.
        into: where the copy goes; readable for all users that can open its folder, since services run as other users.
    """
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    for entry in config["clusters"]:
        entry["cluster"]["server"] = server
    into.write_text(yaml.safe_dump(config))
    into.chmod(0o644)


def install(client: KubeClient) -> None:
    """Apply the definition, and wait until its objects are served.

    Raises:
        ClusterRefused: the rights are missing, or it is not served in time.
        ClusterUnavailable: no answer.
    """
    body = definition()
    path = f"{_DEFINITIONS_PATH}/{body['metadata']['name']}?fieldManager=eni-tasks&force=true"
    what = "applying the CiliumNode definition"
    client.call("PATCH", path, what=what, body=body, content_type="application/apply-patch+yaml")
    deadline = time.monotonic() + _SERVED_SECONDS
    while True:
        try:
            client.call("GET", f"{NODES_PATH}?limit=1", what="listing CiliumNodes")
        except ClusterRefused:
            # 404 until the definition is established.
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return


def main() -> int:
    """Write the kubeconfig, then install; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m eni_tasks.sandbox.kube.installing", description="Readies a Kubernetes API for CiliumNodes."
    )
    parser.add_argument("--kubeconfig", type=Path, required=True, help="as the server wrote it")
    parser.add_argument("--server", required=True, metavar="URL", help="the server as others reach it")
    parser.add_argument("--into", type=Path, required=True, help="the kubeconfig to write")
    arguments = parser.parse_args()
    try:
        redirect(arguments.kubeconfig, arguments.server, arguments.into)
        install(KubeClient(10.0, 1, str(arguments.into)))
    except (EniTasksError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
