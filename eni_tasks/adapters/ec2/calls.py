"""Sends one EC2 call: times it, calls the observer, translates errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from botocore import xform_name

from eni_tasks.adapters.ec2.errors import CALL_ERRORS, CREDENTIALS_REFUSED, translate
from eni_tasks.errors import Ec2Error

if TYPE_CHECKING:
    from eni_tasks.adapters.ec2.client import Ec2Clients
    from eni_tasks.ports.ec2 import ReadLimits

OK = "OK"

# What one call was: EC2 action, error code or OK, seconds it took.
Observer = Callable[[str, str, float], None]

Answer = Mapping[str, Any]


class Ec2Calls:
    """The two ways to call EC2; boto3's untyped answers leave here as mappings of unknown content.

    Args:
        clients: where the boto3 clients come from.
        observe: called after every call, also one that failed.
        read_limits: what permits reads; None for a process that makes a handful.
    """

    def __init__(self, clients: Ec2Clients, observe: Observer, read_limits: ReadLimits | None = None) -> None:
        self._clients = clients
        self._read_limits = read_limits
        self._observe = observe

    def read(self, action: str, **parameters: Any) -> Answer:
        """Ask for something; boto3 may repeat the request.

        Args:
            action: EC2's name of it, such as "DescribeSubnets".
            parameters: as boto3 names them.

        Raises:
            Ec2Error: EC2 refused or did not answer.
            InvalidInput: no client can be made (no region).
            TransientError: the rate limit does not permit it now; nothing was sent.
        """
        if self._read_limits is not None:
            self._read_limits.take(action)
        try:
            return self._send(action, parameters, mutation=False)
        except Ec2Error as error:
            if error.throttled and self._read_limits is not None:
                self._read_limits.throttled(action)
            raise

    def mutate(self, action: str, **parameters: Any) -> Answer:
        """Change something; the request leaves this process once, whatever happens to its answer.

        Its rate limit is the caller's business. Args and Raises are otherwise those of `read`.
        """
        return self._send(action, parameters, mutation=True)

    def _send(self, action: str, parameters: dict[str, Any], *, mutation: bool) -> Answer:
        started, client = time.monotonic(), None
        try:
            # Making the client looks for credentials, so it fails like a call.
            client = self._clients.get(mutation=mutation)
            answer: Answer = getattr(client, xform_name(action))(**parameters)
        except CALL_ERRORS as error:
            refusal = translate(action, error, mutation=mutation)
            if refusal.code in CREDENTIALS_REFUSED:
                self._clients.forget(client)
            self._observe(action, refusal.code, time.monotonic() - started)
            raise refusal from error
        self._observe(action, OK, time.monotonic() - started)
        return answer
