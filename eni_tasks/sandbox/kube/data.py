"""The file in which a store outlives its process, as etcd does for a real API server.

Every change is appended as the very line that watches send. A server that starts anew knows the objects
and their versions, but not the way there: watches from before get 410, as from a real one whose watch
cache is fresh.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


class Data:
    """An append-only file of changes.

    Args:
        path: of the file, which is made when it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.version = 0  # of the last change
        # Unbuffered: one write per change, so that a killed server loses nothing that it answered.
        self._file = path.open("ab", buffering=0)

    def load(self) -> dict[str, dict[str, Any]]:
        """Returns the objects after the last change, by name."""
        objects: dict[str, dict[str, Any]] = {}
        for line in self._path.read_bytes().splitlines():
            event = msgspec.json.decode(line)
            metadata = event["object"]["metadata"]
            self.version = int(metadata["resourceVersion"])
            if event["type"] == "DELETED":
                del objects[metadata["name"]]
            else:
                objects[metadata["name"]] = event["object"]
        return objects

    def append(self, line: bytes) -> None:
        """Adds a change.

        Args:
            line: with its line end.
        """
        self._file.write(line)
