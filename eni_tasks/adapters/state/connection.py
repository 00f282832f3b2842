"""One Redis client per process, made so that no call hangs, and the scripts that it runs.

Bounded in every direction: 5 s per answer, few retries, a pool that waits instead of growing. Redis
7.0 or Valkey is needed (scripts write after asking for the time). `translated` is the one place that
turns redis-py's errors into `StateUnavailable`; errors of our own making (a wrong type, a bug in a
script) pass through.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha1
from importlib import resources
from typing import TYPE_CHECKING, Any

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    MasterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)
from redis.retry import Retry

from eni_tasks.errors import StateUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# A Redis command with its arguments.
Command = tuple[Any, ...]

SOCKET_TIMEOUT_SECONDS = 5
HEALTH_CHECK_SECONDS = 10
RETRIES = 2

# ReadOnly: a failover is under way, and this is the old primary.
_UNAVAILABLE = (RedisConnectionError, RedisTimeoutError, MasterDownError, OutOfMemoryError, ReadOnlyError)
# Answers for which redis-py has no class: no replica to write to, no disk, a script that runs too long.
_UNAVAILABLE_PREFIXES = ("NOREPLICAS", "MISCONF", "BUSY")


@contextmanager
def translated() -> Iterator[None]:
    """Turn Redis' unavailability into ours.

    Raises:
        StateUnavailable: Redis did not answer, or refuses everybody for now.
    """
    try:
        yield
    except _UNAVAILABLE as error:
        raise StateUnavailable(f"Redis did not serve us: {error}; is it up, and is its URL right?") from error
    except ResponseError as error:
        if str(error).startswith(_UNAVAILABLE_PREFIXES):
            raise StateUnavailable(f"Redis refuses for now: {error}") from error
        raise


def connect(url: str, *, connections: int) -> redis.Redis:
    """Make the client; nothing is sent before the first call.

    Args:
        url: redis://[user:password@]host[:port][/db], or rediss:// for TLS, which verifies the server's
            certificate and name; redis-py's own options may follow as a query (`?ssl_ca_certs=/path`).
        connections: at most so many at once; a thread beyond that waits for one.
    """
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=SOCKET_TIMEOUT_SECONDS,
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_keepalive=True,
        health_check_interval=HEALTH_CHECK_SECONDS,
        # Scripts are written so that a repeated one does no harm: its first answer may have been lost.
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1), RETRIES),
        protocol=2,  # one form of answers, whatever redis-py's default is
        client_name="eni-tasks",
    )
    return redis.Redis(connection_pool=pool)


class Scripts:
    """The operations of `scripts/`, read from the package once, sent by hash, several in one round trip.

    Every script does no harm when it is repeated, so a round trip that met a server which does not know
    them (a new one, a failover, SCRIPT FLUSH) is simply made again after loading all.

    Args:
        client: the connection.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        folder = resources.files(__package__) / "scripts"
        self._texts = {
            file.name.removesuffix(".lua"): file.read_bytes() for file in folder.iterdir() if file.name.endswith(".lua")
        }
        # The name that Redis gives a script; no secret depends on it.
        self._hashes = {name: sha1(text, usedforsecurity=False).hexdigest() for name, text in self._texts.items()}

    def call(self, name: str, keys: Sequence[str], args: Iterable[Any]) -> Command:
        """One run of scripts/<name>.lua, for `together`."""
        return ("EVALSHA", self._hashes[name], len(keys), *keys, *args)

    def run(self, name: str, keys: Sequence[str], args: Iterable[Any]) -> Any:
        """Run scripts/<name>.lua.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        return self.together(self.call(name, keys, args))[0]

    def together(self, *commands: Command) -> list[Any]:
        """Send commands in one round trip; each is atomic, all of them are not.

        Returns:
            One answer per command.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        with translated():
            try:
                return self._send(commands)
            except NoScriptError:
                self._send([("SCRIPT LOAD", text) for text in self._texts.values()])
                return self._send(commands)

    def _send(self, commands: Sequence[Command]) -> list[Any]:
        if len(commands) == 1:
            return [self._client.execute_command(*commands[0])]  # type: ignore[no-untyped-call]
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        return pipe.execute()
