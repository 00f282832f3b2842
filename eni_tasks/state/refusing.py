"""Connections that are dropped when the server refuses to serve.

After a failover the old primary is still there, as a replica, and keeps its connections: it answers READONLY to each
write. A new connection resolves the name again, and reaches the new primary. The same is done for the other answers
that say that this server can't serve now: for redis-py they are lost connections, and are tried again as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis
from redis.exceptions import MasterDownError, OutOfMemoryError, ReadOnlyError, ResponseError

_REFUSALS = (ReadOnlyError, MasterDownError, OutOfMemoryError)
# Answers for which redis-py has no class: this server was demoted, has no replica, no disk, or a script runs too long.
# While it loads its data redis-py itself drops the connection. UNCONFIRMED is the answer of our own scripts if the data
# may lack the last writes: a demoted primary answers so, too, where a script has not written yet.
_REFUSAL_PREFIXES = ("UNBLOCKED ", "NOREPLICAS ", "MISCONF ", "BUSY ", "UNCONFIRMED ")

if TYPE_CHECKING:
    _Base = redis.Connection
else:
    _Base = object


class ServerRefuses(redis.ConnectionError):
    """The server answers, and can't serve now."""


class _Refusing(_Base):
    was_refused = False  # since the pool last saw this connection

    def read_response(self, *args: Any, **options: Any) -> Any:
        """Read an answer.

        Raises:
            ServerRefuses: the server can't serve now; this connection is closed.
        """
        try:
            return super().read_response(*args, **options)
        except ResponseError as error:
            if not isinstance(error, _REFUSALS) and not str(error).startswith(_REFUSAL_PREFIXES):
                raise
            self.was_refused = True
            self.disconnect()  # type: ignore[no-untyped-call]
            raise ServerRefuses(" ".join(filter(None, (error.status_code, str(error))))) from error


class Connection(_Refusing, redis.Connection):
    """A connection without TLS."""


class TlsConnection(_Refusing, redis.SSLConnection):
    """A connection with TLS."""


class Pool(redis.BlockingConnectionPool):
    """Connections to one name; after a refusal the idle ones are dropped, too, since they lead to the same server."""

    def release(self, connection: Any) -> None:
        """Take a connection back."""
        if connection.was_refused:
            connection.was_refused = False
            self.disconnect(inuse_connections=False)
        super().release(connection)  # type: ignore[no-untyped-call]
