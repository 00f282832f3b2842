"""A process that uses EC2, forks, and goes on at the same time as its children; exits 0 if all went well."""

from __future__ import annotations

import os
import sys

from eni_tasks.adapters.ec2.adapter import BotoEc2
from eni_tasks.adapters.ec2.client import ClientOptions
from eni_tasks.model.network import InstanceId

CHILDREN = 3
READS = 20


def read(ec2: BotoEc2, instance_id: InstanceId) -> None:
    for _ in range(READS):
        found = ec2.interfaces_of([instance_id])
        if [interface.instance_id for interface in found[instance_id]] != [instance_id]:
            raise SystemExit(f"asked for {instance_id}, got {found}")


def main() -> int:
    ec2 = BotoEc2(options=ClientOptions(read_attempts=1), observe=lambda *_: None, warn=lambda _: None)
    own, *others = (InstanceId(name) for name in sys.argv[1:])
    read(ec2, own)  # now there is a client with an open connection to inherit
    inherited = ec2._calls._clients.get(mutation=False)
    children = []
    for other in others:
        child = os.fork()
        if child == 0:
            read(ec2, other)
            os._exit(1 if ec2._calls._clients.get(mutation=False) is inherited else 0)
        children.append(child)
    read(ec2, own)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


if __name__ == "__main__":
    sys.exit(main())
