"""`eni-tasks` in this process: its answer, and the messages that it sent."""

from __future__ import annotations

import base64
import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog
from typer.testing import CliRunner

from eni_tasks.cli.commands import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result
    from pumped import System


class Commands:
    """Runs commands against a test's servers."""

    def __init__(self, system: System) -> None:
        self._system = system

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command that ends with `code`; returns what it printed."""
        return self.run(*arguments, code=code).stdout

    def run(self, *arguments: str, code: int | None = 0) -> Result:
        """Run a command that ends with `code`; None: with any."""
        with _own_logs():
            result = CliRunner().invoke(main, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code is None or result.exit_code == code, result.output
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with --json; returns what it answered."""
        return json.loads(self(*arguments, "--json", code=code))

    def sent(self, queue: str) -> list[tuple[str, list[Any]]]:
        """The messages that wait in a queue, oldest first: task and arguments."""
        waiting = self._system.redis.lrange(f"{self._system._keys.broker}{queue}", 0, -1)
        found = []
        for message in reversed(waiting):
            envelope = json.loads(message)
            args, _, _ = json.loads(base64.b64decode(envelope["body"]))
            found.append((envelope["headers"]["task"], args))
        return found


@contextmanager
def _own_logs() -> Iterator[None]:
    """A command sets up logs for its process; here the process goes on without its stream."""
    root, configuration = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.configure(**configuration)
