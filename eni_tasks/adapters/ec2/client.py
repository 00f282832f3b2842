"""The boto3 clients, one session per process, made late, made again after a fork; and one call with them.

Region, endpoint and credentials come from AWS's usual places (environment, shared files, role of the
pod or the instance); nothing here names a host. A call is timed, observed, and its error translated.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import NoRegionError

from eni_tasks.adapters.ec2.errors import CALL_ERRORS, CREDENTIALS_REFUSED, translate
from eni_tasks.errors import Ec2Error, InvalidInput

if TYPE_CHECKING:
    from eni_tasks.ports.ec2 import ReadLimits

OK = "OK"

# What one call was: EC2 action, error code or OK, seconds it took.
Observer = Callable[[str, str, float], None]

Answer = Mapping[str, Any]


class ClientOptions(NamedTuple):
    """How a process talks to EC2.

    Args:
        connect_timeout_seconds: longest wait for a connection.
        read_timeout_seconds: longest wait for an answer.
        connections: at least the number of threads, else they queue for sockets.
        read_attempts: how often boto3 itself may send a read; a mutation is always sent once.
    """

    connect_timeout_seconds: float = 3.0
    read_timeout_seconds: float = 20.0
    connections: int = 16
    read_attempts: int = 2


class _Clients(NamedTuple):
    """What belongs to one process; boto3 has no types, so Any begins here."""

    pid: int
    reads: Any
    mutations: Any


class Ec2Clients:
    """Gives every thread of a process the same two clients: one for reads, one for mutations.

    They differ in retries alone. boto3 would repeat a mutation whose answer got lost, and so assign
    addresses twice; and a client inherited over a fork would share its sockets with the parent.
    """

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._clients: _Clients | None = None

    def get(self, *, mutation: bool) -> Any:
        """Return this process's client for reads or for mutations.

        Raises:
            InvalidInput: no region is known, or the region or endpoint makes no sense.
        """
        clients = self._clients
        if clients is None or clients.pid != os.getpid():
            with self._lock:
                clients = self._clients
                if clients is None or clients.pid != os.getpid():
                    clients = self._clients = self._build()
        return clients.mutations if mutation else clients.reads

    def forget(self, client: Any) -> None:
        """Make the next call with new clients, which look for credentials again.

        boto3 keeps the credentials that it found: it reads no replaced file again, and where it found none it does not
        look again.

        Args:
            client: the one that was refused; if there is a newer one already, that stays.
        """
        with self._lock:
            clients = self._clients
            if clients and client in (clients.reads, clients.mutations):
                self._clients = None

    def _build(self) -> _Clients:
        # boto3 itself looks at AWS_DEFAULT_REGION only, the other SDKs at AWS_REGION.
        session = boto3.session.Session(region_name=os.environ.get("AWS_REGION") or None)
        try:
            return _Clients(
                pid=os.getpid(),
                reads=session.client("ec2", config=self._config(self._options.read_attempts)),
                mutations=session.client("ec2", config=self._config(1)),
            )
        except NoRegionError as error:
            raise InvalidInput(
                "No AWS region is set: set AWS_REGION (or AWS_DEFAULT_REGION) to the region of the nodes"
            ) from error
        except ValueError as error:
            raise InvalidInput(
                f"AWS_REGION or AWS_ENDPOINT_URL_EC2 (AWS_ENDPOINT_URL) cannot be used: {error}"
            ) from error

    def _config(self, attempts: int) -> Config:
        return Config(
            connect_timeout=self._options.connect_timeout_seconds,
            read_timeout=self._options.read_timeout_seconds,
            max_pool_connections=self._options.connections,
            tcp_keepalive=True,
            retries={"mode": "standard", "total_max_attempts": attempts},
        )


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
