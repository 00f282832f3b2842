"""Two files that tell an orchestrator how a process is: `alive`, touched as its loop turns, and `ready`.

`ready` is there while the process serves. Files, since a probe that starts Python and imports Celery costs more
than the work that it looks after. Who keeps them, and when, is the business of the loops.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from eni_tasks.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator


class Probes:
    """The files of this process; those of an earlier one are taken back.

    Args:
        folder: where they are; "" for none at all.

    Raises:
        InvalidInput: the folder can't be written.
    """

    def __init__(self, folder: str) -> None:
        self._alive, self._ready = (Path(folder) / name if folder else None for name in ("alive", "ready"))
        try:
            self.serving(now=False)
            self.alive()
        except OSError as error:
            raise InvalidInput(f"ENI_TASKS_PROBE_DIR can't be written: {error}") from error

    def alive(self, ahead_seconds: float = 0.0) -> None:
        """The loop turns.

        Args:
            ahead_seconds: how long it will be away for a good reason, such as a server that doesn't answer:
                starting the process again would not help.
        """
        if self._alive:
            self._alive.touch()
            if ahead_seconds:
                until = time.time() + ahead_seconds
                os.utime(self._alive, (until, until))

    def serving(self, *, now: bool) -> None:
        """Whether the process does its work now."""
        if self._ready and now:
            self._ready.touch()
        elif self._ready:
            self._ready.unlink(missing_ok=True)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One turn of a loop: it lives, and serves if the turn ends well."""
        self.alive()
        try:
            yield
        except BaseException:
            self.serving(now=False)
            raise
        self.serving(now=True)
