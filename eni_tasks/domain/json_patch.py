"""Writes JSON Patch operations against one read of an object, so that other writers never lose.

The agent, people and we change the same object at the same time. Each list begins with a test on
the object's uid. What others may create in the meantime is only added while the object is still at
the version that was read; what only we write is added at any time. Which fields to write is
`status`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]
Operation = dict[str, Any]


def value_at(obj: Mapping[str, Any], path: Path) -> Any:
    """Read the value at a path, None if any part of it is absent or no map."""
    found: Any = obj
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


_INSTANCE_IDS: tuple[Path, ...] = (("spec", "instance-id"), ("spec", "eni", "instance-id"))


class PatchWriter:
    """Collects operations for one object.

    Args:
        obj: the object as it was read.
        ours: paths that nobody but us creates; their content is ours as well.
    """

    def __init__(self, obj: Mapping[str, Any], ours: frozenset[Path]) -> None:
        self._obj = obj
        self._ours = ours
        self._operations: list[Operation] = []
        self._created: set[Path] = set()
        self._at_version = False

    def put(self, path: Path, value: object) -> None:
        """Set the value at a path, creating what is missing above it."""
        for length in range(1, len(path)):
            parent = path[:length]
            if parent not in self._created and not isinstance(value_at(self._obj, parent), Mapping):
                self._created.add(parent)
                self._add(parent, {})
        self._add(path, value)

    def remove(self, path: Path) -> None:
        """Remove the value at a path that the object has."""
        self._operations.append({"op": "remove", "path": _pointer(path)})

    def operations(self) -> list[Operation]:
        """Give all operations, guarded; none if nothing is to be written."""
        if not self._operations:
            return []
        metadata = self._obj["metadata"]
        guards: list[Operation] = [{"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}]
        # Another machine may come under the same object: what is written belongs to this one.
        guards += [
            {"op": "test", "path": _pointer(path), "value": instance_id}
            for path in _INSTANCE_IDS
            if (instance_id := value_at(self._obj, path))
        ]
        if self._at_version:
            version = metadata["resourceVersion"]
            guards.append({"op": "test", "path": "/metadata/resourceVersion", "value": version})
        return guards + self._operations

    def _add(self, path: Path, value: object) -> None:
        # "add" replaces what is there: harmless below a path of ours, else somebody's loss.
        self._at_version |= not any(path[: len(own)] == own for own in self._ours)
        self._operations.append({"op": "add", "path": _pointer(path), "value": value})


def _pointer(path: Path) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
