"""Two Redis servers behind a proxy: one serves, the other is its replica; and the data can go back in time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import redis

from chaos.proxy import Proxy

if TYPE_CHECKING:
    from pathlib import Path

    from eni_tasks.sandbox.processes import Children

FIRST, SECOND = "redis", "redis-2"
LOAD_SECONDS = 10.0
NO_MASTER_PORT = 1  # a replica that is set to follow this keeps the data that it has


class RedisPair:
    """The servers by name, and which of them serves.

    Args:
        children: the sandbox's processes, which have the first server.
        url: of the first server.
    """

    def __init__(self, children: Children, url: str) -> None:
        self._children = children
        self._ports = {FIRST: _port(url), SECOND: _port(children.start_redis(SECOND))}
        # No pool: each client is one connection, made again after the server was killed.
        self._clients = {name: redis.Redis(port=port, socket_timeout=10) for name, port in self._ports.items()}
        self.serving = FIRST
        self.proxy = Proxy(self._ports[FIRST])
        self.url = f"redis://127.0.0.1:{self.proxy.port}/0"
        self._backup: bytes | None = None
        self._lags = False

    def close(self) -> None:
        """Close the connections; the servers are the sandbox's to end."""
        self.proxy.close()
        for client in self._clients.values():
            client.close()

    @property
    def client(self) -> redis.Redis:
        """Leads to the server that serves, past the proxy."""
        return self._clients[self.serving]

    @property
    def _other(self) -> str:
        return SECOND if self.serving == FIRST else FIRST

    # -- a replica -----------------------------------------------------------------------------------
    def follow(self) -> None:
        """Let the other server be a replica of the one that serves."""
        self._lags = False
        self._clients[self._other].replicaof("127.0.0.1", str(self._ports[self.serving]))

    def stop_following(self) -> None:
        """Let the replica have no more of what is written from now on.

        Raises:
            RuntimeError: it has not even what was written until now.
        """
        replica = self._clients[self._other]
        state = replica.info("replication")
        if self._lags:
            raise RuntimeError("the replica lags already")
        if state.get("master_link_status") != "up" or state.get("master_port") != self._ports[self.serving]:
            raise RuntimeError("the replica has no copy yet")
        self._lags = True
        replica.replicaof("127.0.0.1", str(NO_MASTER_PORT))

    def promote(self, *, cut: bool) -> bool:
        """Let the replica serve, and the other one follow it.

        Args:
            cut: whether the connections to the old primary are closed.

        Returns:
            False if the replica does not lag any more: there was other trouble meanwhile.
        """
        if not self._lags:
            return False
        old = self.serving
        self._clients[self._other].replicaof("NO", "ONE")
        self.serving = self._other
        self.proxy.lead_to(self._ports[self.serving], cut=cut)
        self._lags = False
        self._clients[old].replicaof("127.0.0.1", str(self._ports[self.serving]))
        return True

    # -- a copy of the data -----------------------------------------------------------------------
    def back_up(self) -> None:
        """Keep a copy of the data."""
        self.client.save()
        file = self._file(self.serving)
        self._backup = file.read_bytes()
        file.unlink()

    def start_again(self, name: str, *, from_backup: bool = False) -> None:
        """Kill a server if it still runs, and start it: empty, or with the copy of the data."""
        file = self._file(name)
        file.unlink(missing_ok=True)
        if from_backup and self._backup is not None:
            file.write_bytes(self._backup)
        self._children.again(name)
        deadline = time.monotonic() + LOAD_SECONDS
        while self._is_loading(name) and time.monotonic() < deadline:
            time.sleep(0.02)
        file.unlink(missing_ok=True)
        self.follow()

    def _is_loading(self, name: str) -> bool:
        try:
            self._clients[name].ping()
        except redis.ConnectionError:  # BusyLoadingError is one
            return True
        return False

    def _file(self, name: str) -> Path:
        return self._children.folder / f"{name}.rdb"


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port
