"""`python -m interrupting.server`: forks a worker process per line of its input, warm and at once.

A line of JSON in: settings, flow, kill_at, clock_offset_seconds. A line out: whether the worker was killed, and
the points that it came to. The modules and the EC2 client are made once; each fork has its own connections.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

import kubernetes  # noqa: F401 - warm for all forks

from eni_tasks.adapters.ec2.adapter import BotoEc2
from eni_tasks.adapters.ec2.client import ClientOptions
from eni_tasks.bootstrap import Services
from eni_tasks.observability import logs
from eni_tasks.settings import Settings
from eni_tasks.state.connection import advance_clock
from interrupting.flows import FLOWS, Lost
from interrupting.points import Points

if TYPE_CHECKING:
    from eni_tasks.adapters.ec2.client import Ec2Clients


def _warm_ec2() -> tuple[BotoEc2, Ec2Clients]:
    ec2 = BotoEc2(options=ClientOptions(read_timeout_seconds=2.0), observe=lambda *_: None, warn=lambda *_: None)
    clients: Ec2Clients = ec2._calls._clients
    clients.get(mutation=True)
    return ec2, clients


def _work(order: dict[str, Any], report_to: int, ec2: BotoEc2, clients: Ec2Clients) -> None:
    """Be a worker process."""
    assert clients._clients is not None
    # Made before the fork, but without a connection: it may be used on.
    clients._clients = clients._clients._replace(pid=os.getpid())
    advance_clock(order["clock_offset_seconds"])
    services = Services(Settings(**order["settings"]), Lost())
    services.__dict__["ec2"] = ec2
    points = Points(order["kill_at"], report_to)
    points.hook_in()
    FLOWS[order["flow"]](services)
    points.reach("its end")


def _carry_out(order: dict[str, Any], ec2: BotoEc2, clients: Ec2Clients) -> dict[str, Any]:
    reading, report_to = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _work(order, report_to, ec2, clients)
            code = 0
        except BaseException:  # noqa: BLE001 - the fork must not come out of here
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(report_to)
    with os.fdopen(reading) as lines:
        points = lines.read().splitlines()
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, "failed": not killed and os.waitstatus_to_exitcode(status) != 0, "points": points}


def main() -> None:
    """Serve until the input ends."""
    logs.configure(json=False, level="error")
    ec2, clients = _warm_ec2()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_carry_out(json.loads(line), ec2, clients)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
