"""`python -m eni_tasks.sandbox.ec2`: the EC2 API as a process of its own, with the default network.

Prints one line of JSON with its URL and the ids of the network when it is ready. SIGTERM and SIGINT end
it, and with `--end-with-parent` so does the end of its parent process.
"""

from __future__ import annotations

import argparse
import os
import sys

from eni_tasks.sandbox.ec2.knobs import aws_default_buckets
from eni_tasks.sandbox.ec2.server import Ec2Server
from eni_tasks.sandbox.ec2.world import build_default_world
from eni_tasks.sandbox.serving import announce_and_wait, hold_signals


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eni_tasks.sandbox.ec2", description="An EC2 API for ENIs.")
    parser.add_argument("--address", default="127.0.0.1", help="where it listens (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="port (default: a free one)")
    parser.add_argument("--zones", type=int, default=2, choices=(1, 2, 3), help="zones in the network (default: 2)")
    parser.add_argument("--region", default="eu-west-1", help="names the zones (default: eu-west-1)")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="how long every call takes (default: 0)")
    parser.add_argument("--throttle", type=float, metavar="FACTOR", help="AWS's documented rates times FACTOR")
    parser.add_argument("--end-with-parent", action="store_true", help="end when the parent process does")
    return parser.parse_args()


def main() -> int:
    """Serve until a signal comes; returns the exit code."""
    arguments = _arguments()
    hold_signals()
    parent = os.getppid() if arguments.end_with_parent else None
    built = build_default_world(arguments.zones, arguments.region)
    with Ec2Server(built.world, arguments.port, arguments.address) as server:
        buckets = aws_default_buckets(arguments.throttle) if arguments.throttle else {}
        server.control.set_knobs(buckets=buckets, latency_seconds={"*": arguments.latency_ms / 1000})
        ready = {
            "url": server.url,
            "region": arguments.region,
            "vpc_id": built.vpc_id,
            "node_subnets": built.node_subnets,
            "pod_subnets": built.pod_subnets,
            "node_group": built.node_group,
            "pod_group": built.pod_group,
        }
        announce_and_wait(ready, parent=parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
