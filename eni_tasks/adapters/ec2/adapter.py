"""`BotoEc2`, the EC2 port on boto3: joins the reads and the mutations on the clients of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eni_tasks.adapters.ec2.client import ClientOptions, Ec2Calls, Ec2Clients, Observer
from eni_tasks.adapters.ec2.mutations import Ec2Mutations
from eni_tasks.adapters.ec2.reads import Ec2Reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from eni_tasks.ports.ec2 import ReadLimits


class BotoEc2(Ec2Reads, Ec2Mutations):
    """Implements `eni_tasks.ports.ec2.Ec2`; threads share it, and it survives a fork.

    Args:
        options: time-outs and sizes.
        observe: called as (action, code, seconds) after every call; the code of a success is "OK".
        warn: called with a sentence about each item of an answer that had to be left out.
        read_limits: what permits reads; None: nothing bounds them.
    """

    def __init__(
        self,
        *,
        options: ClientOptions,
        observe: Observer,
        warn: Callable[[str], None],
        read_limits: ReadLimits | None = None,
    ) -> None:
        self._calls = Ec2Calls(Ec2Clients(options), observe, read_limits)
        self._warn = warn
