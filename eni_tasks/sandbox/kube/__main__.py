"""`python -m eni_tasks.sandbox.kube`: the API as a process of its own.

Prints one line of JSON with its address when it is ready; SIGTERM and SIGINT end it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from eni_tasks.sandbox.kube.data import Data
from eni_tasks.sandbox.kube.server import KubeServer
from eni_tasks.sandbox.kube.store import NodeStore


def main() -> int:
    """Serves until a signal comes; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m eni_tasks.sandbox.kube", description="A Kubernetes API for CiliumNodes."
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--data", type=Path, help="file in which the objects outlive the process (default: none)")
    arguments = parser.parse_args()
    ending = {signal.SIGTERM, signal.SIGINT}
    # Blocked before any thread starts, so that the signal waits for us here.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    store = NodeStore(data=Data(arguments.data) if arguments.data else None)
    with KubeServer(store, arguments.port) as server:
        sys.stdout.write(json.dumps({"url": server.url}) + "\n")
        sys.stdout.flush()
        signal.sigwait(ending)
    return 0


if __name__ == "__main__":
    sys.exit(main())
