"""The connection of one process to Redis, made so that no call hangs, and the scripts that it runs.

Bounded in every direction: 5 s per answer, few retries, a pool that waits instead of growing. Redis 7.0 or
Valkey is needed (scripts write after asking for the time). `Connection.translated` is the one place that turns
redis-py's errors into `StateUnavailable`; errors of our own making (a bug in a script) pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha1
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import NoPermissionError, NoScriptError, ResponseError
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)
from redis.retry import Retry

from eni_tasks.errors import StateUnavailable
from eni_tasks.observability.logs import logger
from eni_tasks.state import refusing
from eni_tasks.state.decoding import text
from eni_tasks.state.refusing import Pool, ServerRefuses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eni_tasks.state.keys import Keys

# A Redis command with its arguments.
Command = tuple[Any, ...]

SOCKET_TIMEOUT_SECONDS = 5
INTERACTIVE_TIMEOUT_SECONDS = 1
HEALTH_CHECK_SECONDS = 10
RETRIES = 2
DAY_MS = 86_400_000
SCAN_COUNT = 1000
PORTION_COUNT = 200  # items per script: a longer script would keep all other clients waiting

_clock_offset_ms = 0


def connect(url: str, *, connections: int, interactive: bool = False) -> redis.Redis:
    """Make the client; nothing is sent before the first call.

    Args:
        url: redis://[user:password@]host[:port][/db], or rediss:// for TLS, which verifies the server's
            certificate and name; redis-py's own options may follow as a query (`?ssl_ca_certs=/path`).
        connections: at most so many at once; a thread beyond that waits for one.
        interactive: a person or a monitor waits for the answer. They learn within a second that Redis is silent, and
            ask again themselves.
    """
    seconds, retries = (INTERACTIVE_TIMEOUT_SECONDS, 0) if interactive else (SOCKET_TIMEOUT_SECONDS, RETRIES)
    pool = Pool.from_url(
        url,
        max_connections=connections,
        timeout=seconds,
        socket_timeout=seconds,
        socket_connect_timeout=seconds,
        socket_keepalive=True,
        health_check_interval=HEALTH_CHECK_SECONDS,
        # Scripts are written so that a repeated one does no harm: its first answer may have been lost.
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1), retries),
        protocol=2,  # one form of answers, whatever redis-py's default is
        client_name="eni-tasks",
    )
    tls = issubclass(pool.connection_class, redis.SSLConnection)
    pool.connection_class = refusing.TlsConnection if tls else refusing.Connection
    return redis.Redis(connection_pool=pool)


class Script(NamedTuple):
    """One run of scripts/<name>.lua."""

    name: str
    keys: Sequence[str]
    args: Iterable[Any]


class Connection:
    """One Redis client, the names of one cluster's keys, and the scripts.

    Scripts are read from the package once, sent by hash, several in one round trip. A repeated script does no
    harm, so a round trip that met a server which does not know them (a new one, a failover, SCRIPT FLUSH) is
    made again after loading all.

    Args:
        client: from `connect`.
        keys: the names of the cluster.
    """

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self.client = client
        self.keys = keys

    def run(self, name: str, keys: Sequence[str], args: Iterable[Any]) -> Any:
        """Run scripts/<name>.lua.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        return self.send(Script(name, keys, args))[0]

    def send(self, *commands: Script | Command) -> list[Any]:
        """Send scripts and commands in one round trip. Each is atomic, all of them together are not.

        Returns:
            One answer per command.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        texts = _script_texts()
        with self.translated():
            try:
                return self._send(commands, texts)
            except NoScriptError:
                self._execute([("SCRIPT LOAD", text) for _, text in texts.values()])
                return self._send(commands, texts)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn Redis' unavailability into ours.

        Raises:
            StateUnavailable: Redis did not answer, can't serve now, or refuses what its URL or its rights ask for; or a
                key of ours had a wrong type, and our data was deleted.
        """
        try:
            yield
        except ServerRefuses as error:
            raise StateUnavailable(f"Redis can't serve now: {error}") from error
        except (RedisConnectionError, RedisTimeoutError) as error:
            raise StateUnavailable(
                f"Redis did not answer: {str(error).rstrip('.')}. Is it running, and is ENI_TASKS_REDIS_URL right?"
            ) from error
        except NoPermissionError as error:
            raise StateUnavailable(
                f"Redis does not permit what we ask: {error}; change the rights of its user"
            ) from error
        except ResponseError as error:
            if str(error).startswith("DB index"):
                raise StateUnavailable(f"Redis has no such database: {error}; correct its URL") from error
            if "WRONGTYPE " in str(error):  # in a pipeline more words stand before it
                raise StateUnavailable(
                    f"Redis had something else where our data belongs, so all of it is read again: {self._start_over()}"
                ) from error
            raise

    def _start_over(self) -> str:
        """If a key of ours has a wrong type, delete all our keys; returns in words what was found.

        Somebody has put something else in the place of a key, so what it held is lost, and what others hold does not
        fit to it any more. The watchers then do what they do when Redis has lost all its data. A pause stays.
        """
        with self.translated():
            names = list(map(text, self.client.scan_iter(f"{self.keys.prefix}*", count=SCAN_COUNT)))
            types = map(text, self._execute([("TYPE", name) for name in names]))
            expected = {name: self.keys.type_of(name) for name in names}
            wrong = {
                name: found
                for name, found in zip(names, types, strict=True)
                if found not in (expected[name] or found, "none")
            }
            if not wrong:
                return "another process has done so"
            lost = [name for name in names if expected[name] and (name != self.keys.switches or name in wrong)]
            self.client.unlink(*lost)
        for name, found in wrong.items():
            logger().error("state_key_deleted", key=name, type=found, expected=expected[name])
        return ", ".join(f"{name} is a {found}, not a {expected[name]}" for name, found in wrong.items())

    def now_ms(self) -> int:
        """Redis' time in milliseconds.

        Raises:
            StateUnavailable: Redis did not answer.
        """
        (answer,) = self.send(("TIME",))
        return time_ms(answer)

    def _send(self, commands: Sequence[Script | Command], texts: Mapping[str, tuple[str, bytes]]) -> list[Any]:
        return self._execute(
            [
                ("EVALSHA", texts[each.name][0], len(each.keys), *each.keys, *each.args, _clock_offset_ms)
                if isinstance(each, Script)
                else each
                for each in commands
            ]
        )

    def _execute(self, commands: Sequence[Command]) -> list[Any]:
        if len(commands) == 1:
            return [self.client.execute_command(*commands[0])]  # type: ignore[no-untyped-call]
        pipe = self.client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        return pipe.execute()


def time_ms(answer: tuple[int, int]) -> int:
    """The answer of Redis' TIME in milliseconds, as `now_ms` of the scripts computes it."""
    whole, micros = answer
    return int(whole) * 1000 + int(micros) // 1000 + _clock_offset_ms


def advance_clock(seconds: float) -> None:
    """Let time pass for this process: its scripts see Redis' time plus the sum of all calls.

    Tests use it instead of waiting. Lifetimes of keys (EXPIRE) are Redis' own and do not follow.
    """
    global _clock_offset_ms  # noqa: PLW0603 - one clock per process, as there is one Redis time
    _clock_offset_ms += round(seconds * 1000)


def clock_offset_seconds() -> float:
    """The sum of all calls of `advance_clock`."""
    return _clock_offset_ms / 1000


@lru_cache(maxsize=1)
def _script_texts() -> dict[str, tuple[str, bytes]]:
    """Read each script with what stands before it: name → (the name that Redis gives it, text)."""
    folder = resources.files(__package__) / "scripts"
    names = ("clock.lua", "number.lua", "bucket.lua", "generation.lua")
    library = "".join((folder / "lib" / name).read_text() for name in names)
    found = {}
    for file in folder.iterdir():
        if file.name.endswith(".lua"):
            text = (library + file.read_text()).encode()
            # No secret depends on this hash.
            found[file.name.removesuffix(".lua")] = (sha1(text, usedforsecurity=False).hexdigest(), text)
    return found


def milliseconds(seconds: float) -> int:
    """Seconds as Redis keeps times, in whole milliseconds."""
    return round(seconds * 1000)
