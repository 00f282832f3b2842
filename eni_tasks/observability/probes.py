"""How a process reports to Kubernetes' probes: two files in a folder of its own, `alive` and `ready`.

The age of `alive` is how long the process has been stuck; `ready` exists while it serves. So a probe is one `find`,
which starts no interpreter and asks no broker: an outage of Redis restarts no process. The loop of each process decides
when to update the files.
"""

from __future__ import annotations

import time
from pathlib import Path

from eni_tasks.errors import InvalidInput
from eni_tasks.observability.logs import logger

SHORTEST_PAUSE_SECONDS = 1.0  # between two touches: probes allow minutes


class Probes:
    """The two files.

    Args:
        folder: where they are; with "" nothing is written.

    Raises:
        InvalidInput: there can be no files in that folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        self._touched_at = 0.0
        if self._folder:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                (self._folder / "alive").touch()
                # The process before this one, in the same pod, may have been killed.
                (self._folder / "ready").unlink(missing_ok=True)
            except OSError as error:
                raise InvalidInput(f"ENI_TASKS_PROBE_DIR={folder} is no folder to write to: {error}") from error

    def alive(self) -> None:
        """Report that the process is not stuck; may be called often."""
        now = time.monotonic()
        if now - self._touched_at >= SHORTEST_PAUSE_SECONDS:
            self._touched_at = now
            self._write("alive", exists=True)

    def ready(self, *, yes: bool) -> None:
        """Report whether the process serves."""
        self._write("ready", exists=yes)

    def _write(self, name: str, *, exists: bool) -> None:
        if self._folder is None:
            return
        try:
            if exists:
                (self._folder / name).touch()
            else:
                (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            # A full disk must not stop the work; the file grows old, and the probe will notice.
            logger().warning("probe_not_written", probe=name, error=str(error))
