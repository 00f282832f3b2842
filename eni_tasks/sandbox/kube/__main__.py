"""`python -m eni_tasks.sandbox.kube`: the Kubernetes API as a process of its own.

Prints one line of JSON with its URL when it is ready. SIGTERM and SIGINT end it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from eni_tasks.sandbox.kube.history import Journal
from eni_tasks.sandbox.kube.server import KubeServer
from eni_tasks.sandbox.kube.store import NodeStore
from eni_tasks.sandbox.serving import announce_and_wait, hold_signals


def main() -> int:
    """Serve until a signal comes; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m eni_tasks.sandbox.kube", description="A Kubernetes API for CiliumNodes."
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--data", type=Path, help="file in which the objects outlive the process (default: none)")
    arguments = parser.parse_args()
    hold_signals()
    store = NodeStore(journal=Journal(arguments.data) if arguments.data else None)
    with KubeServer(store, arguments.port) as server:
        announce_and_wait({"url": server.url})
    return 0


if __name__ == "__main__":
    sys.exit(main())
